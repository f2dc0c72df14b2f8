"""A call as plain data: its arguments by shape, its record, its launch tape, its signature and operators. No torch."""
