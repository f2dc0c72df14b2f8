"""Time until a command's first output: `python -m benchmarks.startup [RUNS]`.

Each command runs in a new process, in turns, so that a busy machine slows all commands equally. The table has the median wall
time and its ratio to an empty interpreter. `cockpit` is the time until a pseudo terminal shows the home screen.
"""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments

RUNS = 15
WAVEDECK = str(Path(sys.executable).with_name("wavedeck"))
COMMANDS = {
    "empty interpreter": [sys.executable, "-c", "pass"],
    "wavedeck --version": [WAVEDECK, "--version"],
    "wavedeck run --help": [WAVEDECK, "run", "--help"],
    "wavedeck sessions list": [WAVEDECK, "sessions", "list"],
}
DRAWN = b"leave"
"""Text of the footer, which is part of the first complete frame."""


def seconds_of(command: list[str], environ: dict[str, str]) -> float:
    """Return the wall time of a command; the command must succeed."""
    started = time.perf_counter()
    subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - started


def seconds_to_first_frame(environ: dict[str, str]) -> float:
    """Return the wall time until a pseudo terminal shows the cockpit's footer."""
    ours, theirs = pty.openpty()
    started = time.perf_counter()
    with subprocess.Popen(
        [WAVEDECK], env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as cockpit:
        os.close(theirs)
        seen = b""
        while DRAWN not in seen:
            seen += os.read(ours, 1 << 16)
        elapsed = time.perf_counter() - started
        cockpit.kill()
    os.close(ours)
    return elapsed


def main(runs: int) -> None:
    """Print the table."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as home:
        environ = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        for _ in range(runs):
            for name, command in COMMANDS.items():
                times.setdefault(name, []).append(seconds_of(command, environ))
            times.setdefault("cockpit, first frame", []).append(seconds_to_first_frame(environ))
    empty = statistics.median(times["empty interpreter"])
    table = Table("what", "median, ms", "times an empty interpreter")
    for name, measured in times.items():
        median = statistics.median(measured)
        table.add_row(name, f"{median * 1e3:.0f}", f"{median / empty:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main(*map(int, arguments(__doc__)[:1] or [RUNS]))
