"""Starts the judge's processes: their Python, the nursery and its fork servers, spares in advance, players. No torch."""
