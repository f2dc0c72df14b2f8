"""Reads files from folders that foreign code can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(file: Path | str, most_bytes: int, *, folder: int | None = None) -> bytes | None:
    """Return the content of a file in `folder` (descriptor); `None` if it is no regular file or larger than `most_bytes`."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > most_bytes:
            return None
        return opened.read(most_bytes)
