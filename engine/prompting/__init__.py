"""Prompts: templates filled with the task, the evaluation and the history as facts."""
