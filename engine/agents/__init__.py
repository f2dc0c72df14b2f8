"""Sessions of agents that are not Wavedeck's own: they send candidates, and get the facts that prompts have."""
