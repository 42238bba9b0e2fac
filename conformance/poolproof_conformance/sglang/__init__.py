"""Released SGLang, its memory cache alone and on the CPU, as a target; runs in a child process only."""
