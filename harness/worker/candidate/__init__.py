"""Handles the candidate as a Python module: imports it, reads its signatures, examines its outputs, detects its patches."""
