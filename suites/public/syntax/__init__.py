"""Reads the files of benchmarks as syntax trees, and writes the module and the test of a task from them."""
