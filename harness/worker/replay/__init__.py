"""Replays records of calls with the candidate's kernels alone, without its host code."""
