"""Shared by all workers: Triton's internals by version, memory of inputs, the GPU of a process, poison, the stopwatch.

`binaries` reads a compiled kernel: registers, spills, load widths, matrix instructions, and the digest of its code.
"""
