"""Runs a candidate on inputs that the judge laid out, and reports its outputs and what it observed.

The judge trusts only the bytes.
"""
