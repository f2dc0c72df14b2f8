"""Predictions made elsewhere: reads them, judges them, keeps their results and writes them in a benchmark's own format."""
