"""Results of predictions, and the file that keeps them, so that nothing is judged twice."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness import Evaluation
from suites.public.recorded import recorded_folder

from .result_lines import ResultLines

WAVEDECK, ORIGINAL = "wavedeck", "original"
"""Protocols: this judge, and the benchmark's own definition of a correct kernel."""


class PredictionResult(msgspec.Struct, frozen=True):
    """How a prediction was judged."""

    key: str
    """See `Sample.key`."""
    task: str
    file: str
    """The suite's own name of the task."""
    sample: int
    protocol: str
    device: str
    verdict: str
    """A verdict of the judge; with the original protocol `passes`, `differs`, `fails` or `unsupported`."""
    call: bool
    """True if the candidate runs."""
    execution: bool
    """True if the candidate is correct."""
    kind: str = ""
    why: str = ""
    """The reason in one line; empty if it is correct."""
    printed: str = ""
    difficulty: int | None = None
    source: str = ""
    seconds: float = 0.0
    session: str = ""
    """The session that has the attempt; empty with the original protocol."""
    evaluation: Evaluation | None = None
    """`None` with the original protocol."""

    @property
    def counted(self) -> bool:
        """False if the device could not judge the candidate: accuracies then leave it out."""
        return self.verdict != "unsupported"

    @property
    def speedup(self) -> float | None:
        """The measured speedup of a correct candidate; `None` if it was not measured."""
        return self.evaluation.speedup if self.evaluation is not None and self.execution else None


class ResultFile(ResultLines[PredictionResult]):
    """The results of one suite on one kind of device, by their keys."""

    def __init__(self, registry: Path, suite: str, device: str) -> None:
        path = recorded_folder(registry, suite) / f"predictions-{device}.jsonl"
        super().__init__(path, PredictionResult, lambda result: result.key)
