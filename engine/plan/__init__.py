"""Plans of runs: what a person asks for, what it may cost, and the objects that its names refer to."""
