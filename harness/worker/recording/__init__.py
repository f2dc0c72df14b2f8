"""Runs the test of a public benchmark with its own reference, and records the calls of the entry points."""
