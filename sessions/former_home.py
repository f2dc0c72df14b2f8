"""Takes over the home of an earlier version, which had its unfinished sessions in `live/` and the finished ones in git alone.

A finished session gets its journal when it is first opened (`sessions.store.restoring`); git keeps all of it.
"""

from __future__ import annotations

import shutil

from .errors import HomeNotWritable
from .home import Home, SessionFiles

NOTE = "This home belongs to a newer Wavedeck: its sessions are in the folder `sessions`.\n"
"""Content of the file `live`, at which an earlier version stops: it would not see sessions, and write into git beside them."""


def take_over(home: Home) -> list[str]:
    """Move each session of an earlier version to its place; a second call goes on where a first one was killed.

    Returns the sessions that an engine of that version still runs: they stay, and a later call moves them. Raises
    `HomeNotWritable`.
    """
    former = home.root / "live"
    if not former.is_dir():
        return []
    running = []
    try:
        home.sessions.mkdir(mode=0o700, exist_ok=True)
        for folder in sorted(former.iterdir()):
            if folder.name.startswith("."):
                shutil.rmtree(folder)  # left by a removal that was interrupted
            elif SessionFiles(folder).running:
                running.append(folder.name)
            else:
                folder.rename(home.sessions / folder.name)
        if not running:
            former.rmdir()
            former.write_text(NOTE)
    except OSError as error:
        raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error
    return running
