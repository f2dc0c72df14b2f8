"""Runs records of calls again with the candidate's kernels alone, without its host code."""
