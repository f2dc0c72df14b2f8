"""Telemetry of a GPU: its state, and its clocks, heat, power and processes during a timing. Torch-free."""
