"""Samples a few programs of each launch at `gpu` sizes and counts the memory traffic that they ask for."""
