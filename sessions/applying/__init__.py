"""Puts a kernel back into the files that it came from.

merging.py        the text of one file with the kernel in it
placing.py        the texts of several files, if the kernel has definitions of each
worktree.py       a branch of the repository with these texts
shell.py          a person's command, with limits
before_after.py   a person's command, run before and after the change
"""
