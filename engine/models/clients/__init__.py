"""Clients: one for each protocol of a provider, and those without a provider."""
