"""Shared by all workers: memory of inputs, the GPU of a process, the simulated GPU, poison, the stopwatch.

`binaries` reads a compiled kernel: registers, spills, load widths, matrix instructions, and the digest of its code.
"""
