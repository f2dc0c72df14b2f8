"""A call as plain data: its tensors and arguments, its launch tape, its signature and operators. No torch."""
