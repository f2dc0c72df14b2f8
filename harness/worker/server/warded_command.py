"""`python -m harness.worker.server.warded_command FOLDER COMMAND...`: runs a command under a warden. Torch-free.

The whole process tree ends with the command, on SIGTERM, and if the caller ends. A tree that exceeds the limits of a guest, or
that keeps too much in FOLDER, is ended. Exits with the command's status, or 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from . import warden


def main() -> NoReturn:
    """Run the command of the arguments to its end."""
    folder, *command = sys.argv[1:]
    warden.run(lambda: _become(command), lambda _pid: None, _exit, lambda: Path(folder))


def _become(command: list[str]) -> NoReturn:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"error: {command[0]} does not start: {error.strerror}\n".encode())
        os._exit(127)


def _exit(end: warden.End) -> NoReturn:
    if end.why:
        os.write(2, f"error: it was ended: {end.why}\n".encode())
    status = os.waitstatus_to_exitcode(end.status)
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
