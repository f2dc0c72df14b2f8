"""The profile tab: time by launch, and the bytes that the interpreter counted."""

from __future__ import annotations

from harness import Evaluation, Latency
from harness.wire.latency import LaunchTime
from tui.cockpit import measures
from tui.cockpit.lines import EMPTY, Line, clean, line
from tui.cockpit.pages.page import paragraph, table
from tui.tables import Cell, Column, Row

LAUNCH_COLUMNS = (
    Column("case", 8, 24),
    Column("GPU", 3, 10, drop=3),
    Column("side", 4, 12),
    Column("#", 2, 3, right=True, drop=2),
    Column("launch", 12, 40),
    Column("us", 8, 10, right=True),
    Column("share", 6, 6, right=True, drop=1),
)


def has_profile(evaluation: Evaluation) -> bool:
    """True if something is known by launch, or bytes were counted."""
    launches = any(latency.launches or latency.baseline_launches for latency in evaluation.latency)
    return launches or bool(evaluation.traffic or evaluation.sampled)


def profile_lines(evaluation: Evaluation, width: int) -> list[Line]:
    """Return time by launch of both sides, then counted and sampled bytes."""
    blocks: list[list[Line]] = []
    launches = [row for latency in evaluation.latency for row in _launch_rows(latency)]
    if launches:
        blocks.append([line("time by launch, measured", "head"), *table(LAUNCH_COLUMNS, launches, width)])
    if evaluation.traffic:
        rows = table(measures.TRAFFIC_COLUMNS, measures.traffic_rows(evaluation), width)
        reads = [finding for finding in evaluation.findings if finding.kind == "out_of_bounds"]
        warnings = [row for finding in reads for row in paragraph(finding.text, width, "warn")]
        blocks.append([line("bytes counted by the interpreter, at CPU sizes", "head"), *rows, *warnings])
    if evaluation.sampled:
        title = line("bytes at GPU sizes, an estimate from a sample of programs", "head")
        blocks.append([title, *table(measures.SAMPLED_COLUMNS, measures.sampled_rows(evaluation), width)])
    reasons = [
        row
        for case, why in evaluation.not_sampled.items()
        for row in paragraph(f"{case} not sampled at GPU sizes: {why}", width, "dim")
    ]
    if reasons:
        blocks.append(reasons)
    return [row for place, block in enumerate(blocks) for row in ([EMPTY, *block] if place else block)]


def _launch_rows(latency: Latency) -> list[Row]:
    sides = ((latency.against or "baseline", latency.baseline_launches), ("this", latency.launches))
    return [row for side, launches in sides for row in _side_rows(latency, clean(side), launches)]


def _side_rows(latency: Latency, side: str, launches: tuple[LaunchTime, ...]) -> list[Row]:
    whole = sum(launch.ms for launch in launches)
    return [
        Row(
            f"{latency.device}/{latency.case}/{side}/{number}",
            (
                Cell(clean(latency.case)),
                Cell(clean(latency.device), "key"),
                Cell(side, "dim"),
                Cell(str(number), "dim"),
                Cell(clean(launch.kernel)),
                Cell(f"{launch.ms * 1e3:.3g}"),
                Cell(f"{launch.ms / whole:.0%}" if whole else "-", "dim"),
            ),
        )
        for number, launch in enumerate(launches, start=1)
    ]
