"""Examples for prompts: the most similar correct kernel that is no answer to a task under test."""
