"""Reads the verdicts by the benchmarks' own definitions of correct that were kept for the candidates of a suite."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import msgspec

from suites.public.recorded import recorded_folder

ORIGINAL = "original"
"""Protocol of results by a benchmark's own definition of a correct kernel."""


class CandidateOf(NamedTuple):
    """A candidate for a task."""

    task: str
    """Full name."""
    source_sha256: str
    """The digest that `AttemptRow` has; empty without a source."""


class _Line(msgspec.Struct):
    """The fields of a `PredictionResult` that are read; its evaluation is long."""

    task: str
    protocol: str
    verdict: str
    source: str = ""


def original_verdicts(registry: Path | None, suite: str) -> dict[CandidateOf, str]:
    """Return `passes`, `differs`, `fails` or `unsupported` by candidate, as the newest line says; empty if nothing was kept."""
    decoder = msgspec.json.Decoder(_Line)
    verdicts: dict[CandidateOf, str] = {}
    for file in sorted(recorded_folder(registry, suite).glob("*.jsonl")) if registry is not None else ():
        for data in file.read_bytes().splitlines():
            try:
                line = decoder.decode(data)
            except msgspec.DecodeError:
                continue  # another kind of line, or one that was cut off
            if line.protocol == ORIGINAL:
                digest = hashlib.sha256(line.source.encode()).hexdigest() if line.source else ""
                verdicts[CandidateOf(line.task, digest)] = line.verdict
    return verdicts
