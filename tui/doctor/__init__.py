"""Checks of `wavedeck doctor`: what this machine can run, and what to change."""
