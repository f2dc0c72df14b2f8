"""Values and variants of the inputs that a task draws, and their shapes at sizes too large to draw."""
