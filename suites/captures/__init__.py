"""Calls of a function in a person's own program: recorded, read, and chosen as the cases of a task. Nothing here imports torch.

startup/        what the person's Python runs at its start: the hook that records (Python 3.9, standard library)
program.py      the environment of the person's program, and the files that its processes write
capture.py      the file of a capture: its types, reading, merging
signature_texts.py    writes a call as `--shapes` does
choice.py       chooses the cases of a task from a capture
lookups.py      tuned configurations that a program looked up, and the files that it lacks
"""
