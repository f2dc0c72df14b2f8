"""What a candidate's launches do at `gpu` sizes, from a sample of their programs."""
