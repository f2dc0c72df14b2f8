"""Samples a few programs of each launch at `gpu` sizes and estimates the memory traffic of the whole launch."""
