"""Profiles: runs a source under a vendor's profiler, above the judge and never inside its timing, and reads the tool's files."""
