"""Runs a candidate on inputs that the judge laid out and reports what it saw. Only its bytes are believed."""
