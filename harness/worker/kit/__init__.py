"""Shared by all workers: Triton's internals by version, memory of inputs, the GPU of a process, poison, the stopwatch."""
