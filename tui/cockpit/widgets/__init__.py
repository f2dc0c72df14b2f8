"""Widgets that draw lines: each repaints only what changed."""
