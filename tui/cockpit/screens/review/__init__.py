"""Review: evidence for a decision."""
