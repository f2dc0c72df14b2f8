"""Sweeps of launch parameters: find them in the source, try variants by compiling, propose the best first."""
