"""Released vLLM, its KV cache manager alone and on the CPU, for the benchmark; runs in a child process only."""
