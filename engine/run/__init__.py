"""Runs: instances, their order and their ends, and the waits for a person."""
