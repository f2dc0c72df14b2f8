"""Actions of a person: the catalogue, the `:` line, what is possible now, and how a command is sent."""
