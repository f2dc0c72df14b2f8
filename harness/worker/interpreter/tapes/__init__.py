"""Runs the first program of a launch in Python, and the others by the tape of its operations."""
