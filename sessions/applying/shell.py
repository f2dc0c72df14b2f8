"""Runs a person's shell command with a limit of time and of kept output, and ends all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from sessions.errors import NotApplicable
from sessions.git_environment import drop_git_variables

LIMIT_S = 3600.0
KEPT_BYTES = 1 << 16
"""The end of each output that is kept."""
READING_S = 2.0
"""Time to read the last output; a process outside of the command's group may hold the pipe for longer."""
SHOWN_LINES, SHOWN_CHARACTERS = 5, 300


def run_shell(command: str, folder: Path, failure: str) -> str:
    """Run a shell command and return the end of its standard output.

    Processes that it left behind in its group are ended with it. Raises `NotApplicable` with the end of its output if it fails
    or takes longer than `LIMIT_S`.
    """
    drop_git_variables()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    ends = [bytearray(), bytearray()]
    pipes = zip((process.stdout, process.stderr), ends, strict=True)
    readers = [threading.Thread(target=_keep_end, args=pipe, daemon=True) for pipe in pipes]
    for reader in readers:
        reader.start()
    ending = f"it runs for more than {LIMIT_S:.0f} s"
    try:
        with suppress(subprocess.TimeoutExpired):
            ending = f"exit code {process.wait(LIMIT_S)}"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for reader in readers:
        reader.join(READING_S)
    output, errors = (end.decode("utf-8", "replace") for end in ends)
    if ending != "exit code 0":
        lines = [line[:SHOWN_CHARACTERS] for line in f"{output}\n{errors}".splitlines() if line.strip()]
        shown = f", it prints: {' | '.join(lines[-SHOWN_LINES:])}" if lines else ""
        raise NotApplicable(f"{failure} ({ending}); nothing is left behind{shown}")
    return output


def _keep_end(pipe: IO[bytes], end: bytearray) -> None:
    with pipe:
        while piece := os.read(pipe.fileno(), KEPT_BYTES):
            end += piece
            del end[:-KEPT_BYTES]
