"""Latency: times by case and GPU."""
