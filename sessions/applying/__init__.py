"""Puts a kernel back into the file that it came from.

merging.py        the text of the file with the kernel in it
worktree.py       a branch of the repository with that text
before_after.py   a person's command, run before and after the change
"""
