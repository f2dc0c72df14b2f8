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

from .worktree import run_shell

PAIRS = 5
STUDENT_95 = 2.776
"""Quantile of Student's distribution for a 95 % interval over `PAIRS` pairs: 4 degrees of freedom."""
WALL_TIME = "wall time, s"
_NUMBER = re.compile(r"([^\s=]+)=([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """One number of a command, by run, in order."""

    command: str
    number: str
    """`WALL_TIME`, or a key that the command prints."""
    before: tuple[float, ...]
    after: tuple[float, ...]
    is_read_known: bool = True
    """False if the file system does not say whether the command read the changed file."""

    @property
    def ratio(self) -> tuple[float, float, float]:
        """After over before, and its 95 % interval: Student's, over the logarithms of the `PAIRS` pairs."""
        logs = [
            math.log(after) - math.log(before) for before, after in zip(self.before, self.after, strict=True)
        ]
        middle, half = statistics.fmean(logs), STUDENT_95 * statistics.stdev(logs) / math.sqrt(len(logs))
        return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def compare_end_to_end(
    command: str, trees: tuple[Path, Path], path: str, on_pair: Callable[[str], None]
) -> list[BenchmarkComparison]:
    """Return the positive numbers that the command prints as `key=value`, else its wall times, of five pairs.

    `trees` are the worktrees before and after the change. See `_alternate`.
    """
    (before, after), is_read_known = _alternate(command, trees, path, on_pair)
    keys = before[0].keys()
    if any(run.keys() != keys for run in (*before, *after)):
        raise NotApplicable(f"{command!r} does not print the same keys of `key=value` in each run")
    if unfit := next(
        (key for run in (*before, *after) for key, value in run.items() if not 0 < value < math.inf), ""
    ):
        raise NotApplicable(f"{command!r} prints {unfit} without a positive number, so there is no ratio")
    return [
        BenchmarkComparison(
            command, key, tuple(run[key] for run in before), tuple(run[key] for run in after), is_read_known
        )
        for key in keys
    ]


def _alternate(
    command: str, trees: tuple[Path, Path], path: str, on_pair: Callable[[str], None]
) -> tuple[tuple[list[dict[str, float]], list[dict[str, float]]], bool]:
    """Run the command in both worktrees, each pair in the opposite order of the last.

    One run of each side comes first and does not count: it fills caches of compiled kernels. Returns the numbers of the runs
    before and after, and whether it is known that the command reads the file `path` of its worktree. Raises `NotApplicable`
    if a run fails, or reads another copy of the file.
    """
    on_pair("runs that do not count")
    are_known = [_check_reads(command, tree, path) for tree in trees]
    runs: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    for pair in range(PAIRS):
        on_pair(f"pair {pair + 1} of {PAIRS}")
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


def _run(command: str, tree: Path) -> dict[str, float]:
    """Return the last number of each key, from lines that hold nothing but `key=value`; without one, the wall time."""
    began = time.monotonic()
    output = run_shell(command, tree, f"{command!r} fails in {tree.name}")
    seconds = time.monotonic() - began
    numbers: dict[str, float] = {}
    for line in output.splitlines():
        matches = [_NUMBER.fullmatch(word) for word in line.split()]
        if all(matches):
            numbers |= {match[1]: float(match[2]) for match in matches if match}
    return numbers or {WALL_TIME: seconds}
