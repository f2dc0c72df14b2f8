"""A worker that finds out whether a GPU still computes."""
