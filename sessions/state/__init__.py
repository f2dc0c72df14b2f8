"""The state of a session: folded from events, and every fact that is computed from it."""
