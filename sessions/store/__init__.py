"""The store: one bare git repository that holds all sessions, and everything that writes to it."""
