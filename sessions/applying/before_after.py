"""Runs a person's command with the old and with the new code, in the order A B B A, and compares the numbers."""

from __future__ import annotations

import math
import re
import shlex
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sessions.errors import NotApplicable

from .witness import KernelProof, ProcessReport, WatchedKernel, prove, witnessed
from .worktree import run_program

PAIRS = 6
STUDENT_95 = 2.571
"""Quantile of Student's distribution for a 95 % interval over `PAIRS` pairs: 5 degrees of freedom."""
WALL_TIME, LAST_LINE = "wall time, s", "last line"
_FIGURE = r"[-+]?(?:(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)"
_NUMBER = re.compile(rf"(?:([^\s=]+)=)?({_FIGURE})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """One number of a command, by run, in order."""

    command: str
    number: str
    """`WALL_TIME`, `LAST_LINE`, a key that the command prints, or the expression that finds it."""
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> tuple[float, float, float]:
        """After over before, and its 95 % interval: Student's, over the logarithms of the `PAIRS` pairs."""
        logs = [
            math.log(after) - math.log(before) for before, after in zip(self.before, self.after, strict=True)
        ]
        middle, half = statistics.fmean(logs), STUDENT_95 * statistics.stdev(logs) / math.sqrt(len(logs))
        return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


class Side(NamedTuple):
    """The old or the new code: where and how the command runs with it."""

    folder: Path
    imports: Path | None = None
    """Folder that comes first on `PYTHONPATH`."""
    overlay: str = ""
    """File of an overlay that all Python processes run; empty without one."""


class EndToEnd(NamedTuple):
    """A command that measures a whole program."""

    command: str
    metric: str = ""
    """Regular expression; the first group of its last match is the number."""

    def check(self) -> None:
        """Raise `NotApplicable` if the command cannot be split into words, or if the expression is none."""
        try:
            words = shlex.split(self.command)
            groups = re.compile(self.metric).groups
        except (ValueError, re.error) as error:
            raise NotApplicable(f"--e2e {self.command!r} or its metric cannot be read: {error}") from error
        if not words or (self.metric and groups != 1):
            raise NotApplicable(
                "--e2e needs a command, and --e2e-metric one group, as in 'Throughput: (.*) tok/s'"
            )

    def compare(
        self, sides: tuple[Side, Side], kernel: WatchedKernel, on_pair: Callable[[str], None]
    ) -> tuple[list[BenchmarkComparison], KernelProof]:
        """Run the command; return the comparison of each number that it prints, and what is proven about the kernel.

        Each pair has the opposite order of the last. One run of each side comes first and does not count: it fills caches of
        compiled kernels, and it is traced. If it did not run the new kernel, nothing more runs, and there are no comparisons.
        Raises `NotApplicable` if a run fails, or has no positive number.
        """
        reports: tuple[list[list[ProcessReport]], list[list[ProcessReport]]] = ([], [])
        runs: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for pair in range(PAIRS + 1):
            on_pair(f"pair {pair} of {PAIRS}" if pair else "runs that do not count")
            for number in (1, 0) if pair % 2 == 0 and pair else (0, 1):
                figures, seen = self._run(sides[number], is_traced=not pair)
                reports[number].append(seen)
                runs[number].append(figures)
            if not pair and (proof := prove(kernel, *reports)).refusal:
                return [], proof
        (_, *before), (_, *after) = runs
        keys = before[0].keys()
        if any(run.keys() != keys for run in (*before, *after)):
            raise NotApplicable(f"{self.command!r} does not print the same keys of `key=value` in each run")
        comparisons = [
            BenchmarkComparison(
                self.command, key, tuple(run[key] for run in before), tuple(run[key] for run in after)
            )
            for key in keys
        ]
        return comparisons, prove(kernel, *reports)

    def _run(self, side: Side, *, is_traced: bool) -> tuple[dict[str, float], list[ProcessReport]]:
        with witnessed(side.imports, side.overlay, is_traced=is_traced) as (environment, reports):
            began = time.monotonic()
            output = run_program(
                shlex.split(self.command), side.folder, f"{self.command!r} fails", environment
            )
            seconds = time.monotonic() - began
        figures = self._figures(output) or {WALL_TIME: seconds}
        if unfit := next((key for key, value in figures.items() if not 0 < value < math.inf), ""):
            raise NotApplicable(
                f"{self.command!r} prints {unfit} without a positive number, so there is no ratio"
            )
        return figures, reports

    def _figures(self, output: str) -> dict[str, float]:
        """Return the match of the metric; else the last number of each key, from lines that hold nothing but `key=value`; else a
        number alone in the last line; else nothing.
        """
        if self.metric:
            numbers = [_NUMBER.fullmatch(text or "") for text in re.findall(self.metric, output)]
            if not numbers or numbers[-1] is None or numbers[-1][1]:
                raise NotApplicable(f"{self.command!r} prints no number that {self.metric!r} finds")
            return {self.metric: _float(numbers[-1])}
        figures: dict[str, float] = {}
        last = None
        for line in output.splitlines():
            words = [_NUMBER.fullmatch(word) for word in line.split()]
            if words:
                last = words[0] if len(words) == 1 else None
            if all(word and word[1] for word in words):
                figures |= {word[1]: _float(word) for word in words if word}
        return figures if figures or last is None else {LAST_LINE: _float(last)}


def _float(match: re.Match[str]) -> float:
    return float(match[2].replace(",", ""))
