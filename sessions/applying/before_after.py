"""Runs a person's command with the original commit and with the change, in alternation, and compares the numbers."""

from __future__ import annotations

import math
import os
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sessions.errors import NotApplicable

from .shell import run_shell

STUDENT_95 = 2.776
"""Quantile of Student's distribution for a 95 % interval with 4 degrees of freedom: five pairs, or two sides of three runs."""
PAIRS, REPEATS = 5, 3
WALL_TIME = "wall time, s"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LAST_LINE = re.compile(rf"\s*(?P<key>[^\s=]+)=(?P<value>{_NUMBER})(?:\s+stderr=(?P<stderr>{_NUMBER}))?\s*")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The numbers of a command, by run, in order."""

    command: str
    number: str
    """`WALL_TIME`, or the key that the command prints."""
    before: tuple[float, ...]
    after: tuple[float, ...]
    is_end_to_end: bool
    """True if the change is a ratio of pairs, False if it is a difference of an accuracy."""
    stderr: float = 0.0
    """The largest standard error that the command printed with a number; 0 if it printed none."""
    is_read_known: bool = True
    """False if the file system does not say whether the command read the changed file."""

    @property
    def ratio(self) -> tuple[float, float, float]:
        """After over before, and its 95 % interval: Student's, over the logarithms of the `PAIRS` pairs."""
        logs = [math.log(after / before) for before, after in zip(self.before, self.after, strict=True)]
        middle, half = statistics.fmean(logs), STUDENT_95 * statistics.stdev(logs) / math.sqrt(len(logs))
        return math.exp(middle), math.exp(middle - half), math.exp(middle + half)

    @property
    def difference(self) -> tuple[float, float, float]:
        """After minus before, and its 95 % interval: from the spread of the runs, and the printed standard error of each side."""
        sides = (self.before, self.after)
        error = math.sqrt(sum(statistics.variance(side) / len(side) + self.stderr**2 for side in sides))
        middle = statistics.fmean(self.after) - statistics.fmean(self.before)
        return middle, middle - STUDENT_95 * error, middle + STUDENT_95 * error


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    key: str
    value: float
    stderr: float


def compare_end_to_end(
    command: str, trees: tuple[Path, Path], path: str, on_pair: Callable[[str], None]
) -> Comparison:
    """Return the command's wall times, or the positive numbers that it prints, of five pairs. See `_alternate`."""
    runs, is_read_known = _alternate(command, trees, path, PAIRS, on_pair)
    keys = {run.key for side in runs for run in side}
    if len(keys) > 1:
        raise NotApplicable(f"{command!r} does not end with the same `key=value` in each run")
    before, after = (tuple(run.value if run.key else run.seconds for run in side) for side in runs)
    if min(*before, *after) <= 0:
        raise NotApplicable(f"{command!r} prints a number that is not positive, so there is no ratio")
    return Comparison(
        command, keys.pop() or WALL_TIME, before, after, is_end_to_end=True, is_read_known=is_read_known
    )


def compare_accuracy(
    command: str, trees: tuple[Path, Path], path: str, on_pair: Callable[[str], None]
) -> Comparison:
    """Return the numbers that the command prints as `key=value`, or `key=value stderr=value`. See `_alternate`."""
    runs, is_read_known = _alternate(command, trees, path, REPEATS, on_pair)
    keys = {run.key for side in runs for run in side}
    if len(keys) > 1 or keys == {""}:
        raise NotApplicable(f"the last line that {command!r} prints must be `key=value`, with one key")
    before, after = (tuple(run.value for run in side) for side in runs)
    stderr = max(run.stderr for side in runs for run in side)
    return Comparison(command, keys.pop(), before, after, False, stderr, is_read_known)


def _alternate(
    command: str, trees: tuple[Path, Path], path: str, pairs: int, on_pair: Callable[[str], None]
) -> tuple[tuple[list[_Run], list[_Run]], bool]:
    """Run the command in both worktrees, each pair in the opposite order of the last.

    One run of each side comes first and does not count: it fills caches of compiled kernels. Returns the runs before and
    after, and whether it is known that the command reads the file `path` of its worktree. Raises `NotApplicable` if a run
    fails, or reads another copy of the file.
    """
    on_pair("runs that do not count")
    are_known = [_check_reads(command, tree, path) for tree in trees]
    runs: tuple[list[_Run], list[_Run]] = ([], [])
    for pair in range(pairs):
        on_pair(f"pair {pair + 1} of {pairs}")
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            runs[side].append(_run(command, trees[side]))
    return runs, all(are_known)


def _check_reads(command: str, tree: Path, path: str) -> bool:
    """Run the command once; return whether it is known that it read the file `path`.

    A command that imports an installed copy of the package would compare this copy with itself. A file that is new is not in
    the original tree, so that nothing can be checked there.
    """
    if not (tree / path).exists():
        _run(command, tree)
        return True
    probe = tree / f"{path}.read"
    probe.touch()
    _mark_unread(probe)
    probe.read_bytes()
    is_known = _was_read(probe)
    probe.unlink()
    _mark_unread(tree / path)
    _run(command, tree)
    if is_known and not _was_read(tree / path):
        raise NotApplicable(
            f"{command!r} does not read {path} of the worktree it runs in, so it would measure an installed copy; let it import "
            "from its folder, for example with PYTHONPATH=."
        )
    return is_known


def _mark_unread(file: Path) -> None:
    # Linux notes a read if the last one is older than the last change. The strange time of change makes Python read the
    # source even if it has compiled it before.
    os.utime(file, (0, 1))


def _was_read(file: Path) -> bool:
    return file.stat().st_atime > 0


def _run(command: str, tree: Path) -> _Run:
    began = time.monotonic()
    output = run_shell(command, tree, f"{command!r} fails in {tree.name}")
    seconds = time.monotonic() - began
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    match = _LAST_LINE.fullmatch(last)
    if match is None:
        return _Run(seconds, "", 0.0, 0.0)
    return _Run(seconds, match["key"], float(match["value"]), float(match["stderr"] or 0))
