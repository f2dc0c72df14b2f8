"""The engine process: its start, its commands and its environment."""
