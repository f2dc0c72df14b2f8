"""The programs of agents that the engine itself starts: how each is called, what it may touch, and what its output says."""
