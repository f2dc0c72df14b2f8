"""The numbers of the cockpit: `python -m benchmarks.tui`."""
