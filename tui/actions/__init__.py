"""What a person can do: the catalogue, the `:` line, what is possible now, and how a command is sent."""
