"""Folders that only their owner can open."""

from __future__ import annotations

from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700; a folder that exists keeps its mode. Raises `OSError`."""
    # `parents=True` would give the parents the mode of the umask.
    for parent in reversed(folder.parents):
        if not parent.exists():
            parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
