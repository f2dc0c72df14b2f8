"""Runs: instances, their order and their ends, and what a person can change meanwhile."""
