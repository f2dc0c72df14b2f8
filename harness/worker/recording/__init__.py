"""Records what one call does to memory, so that a clean process can run it again."""
