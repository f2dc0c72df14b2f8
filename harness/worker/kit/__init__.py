"""Shared by all workers: memory of inputs, the GPU of a process, poison, the stopwatch, and what depends on the Triton version."""
