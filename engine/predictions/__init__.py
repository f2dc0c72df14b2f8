"""Reads predictions made elsewhere, judges them, keeps the results, and writes the results in a benchmark's own format."""
