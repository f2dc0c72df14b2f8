"""The method `tools`, and what it has in common with agents that are not Wavedeck's own: tools and their answers."""
