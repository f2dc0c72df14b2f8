"""Home: the list of sessions."""
