"""The terminal: colours, keys, signals, themes, preferences."""
