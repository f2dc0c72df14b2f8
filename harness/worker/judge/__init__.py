"""Trusted: takes one candidate after the other through call, execution and integrity, and gives the verdict."""
