"""Servers for agents that are not Wavedeck's own."""
