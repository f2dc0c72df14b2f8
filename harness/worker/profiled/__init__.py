"""The process that runs under a profiler, with foreign code."""
