"""Released SGLang, its memory cache alone and on the CPU, under the conformance runner; runs in a child process only."""
