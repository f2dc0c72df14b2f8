"""The commands, one a file; each is loaded when it is asked for."""
