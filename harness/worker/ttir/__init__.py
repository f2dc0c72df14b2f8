"""Executes a kernel as Triton's compiler reads it: its IR, lowered from the same text and run on the CPU."""
