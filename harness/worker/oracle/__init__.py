"""Trusted: inputs from secret seeds, right outputs, the comparison, and the line to a guest."""
