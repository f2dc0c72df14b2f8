"""Agent: one instance, its attempts and calls."""
