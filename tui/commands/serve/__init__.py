"""Commands for agents of other makers, and about this machine."""
