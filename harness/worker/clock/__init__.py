"""Trusted, in the judge's process: drives timers over a task's cases and checks their reports."""
