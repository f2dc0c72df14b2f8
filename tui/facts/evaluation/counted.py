"""Bytes that the interpreter counted or sampled, and the estimates that come from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness import Evaluation
from harness.wire.evaluation import SampledTraffic, Traffic
from tui.facts.tables import Cell, Column, Table, row
from tui.facts.vocabulary import count, estimate, grouped, size

CASE, SIZES = Column("case", keep=True), Column("sizes", drop=7)
ESTIMATE_COLUMNS = (
    Column("target", keep=True),
    CASE,
    Column("sizes", drop=4),
    Column("at best us", right=True),
    Column("shared on dies us", right=True, if_known=True, drop=3),
    Column("uncached us", right=True),
    Column("bound", drop=2),
    Column("of the roofline", right=True, drop=1),
)


def traffic_table(evaluation: Evaluation) -> Table:
    """Return the bytes of each case that the interpreter counted at `cpu` sizes; empty if it counted none."""
    columns = (
        CASE,
        SIZES,
        Column("requested", right=True),
        Column("unique", right=True, drop=2),
        Column("minimal", right=True, drop=1),
        Column("req/min", right=True),
        Column("dot FLOPs", right=True, if_known=True, drop=3),
        Column("launches", right=True, drop=5),
        Column("programs", right=True, drop=6),
    )
    rows = [
        row(
            traffic.case,
            Cell(_sizes(traffic.sizes), "dim"),
            size(_requested(traffic)),
            size(traffic.unique_read_bytes + traffic.unique_write_bytes),
            size(traffic.minimal_bytes),
            _excess(traffic),
            count(traffic.dot_flops) if traffic.dot_flops else "",
            grouped(traffic.launches),
            grouped(traffic.programs),
        )
        for traffic in evaluation.traffic
    ]
    return Table("bytes moved, counted by the interpreter at CPU sizes", columns, tuple(rows))


def sampled_table(evaluation: Evaluation) -> Table:
    """Return the bytes of each case at `gpu` sizes, an estimate, and why a case has none; empty if nothing is known."""
    columns = (
        CASE,
        SIZES,
        Column("requested", right=True),
        Column("on dies at most", right=True, drop=2),
        Column("unique at most", right=True, drop=3),
        Column("minimal", right=True, drop=1),
        Column("req/min", right=True),
        Column("programs sampled", right=True, drop=4),
    )
    rows = [
        row(
            sample.case,
            Cell(_sizes(sample.sizes), "dim"),
            size(_requested(sample)),
            size(sample.die_bytes),
            size(sample.unique_high_bytes),
            size(sample.minimal_bytes),
            _excess(sample),
            Cell(f"{grouped(sample.sampled)} of {grouped(sample.programs)}", "dim"),
        )
        for sample in evaluation.sampled
    ]
    missing = (f"{case} not sampled: {why}" for case, why in evaluation.not_sampled.items())
    title = "bytes at GPU sizes, an estimate from a sample of programs"
    return Table(title, columns, tuple(rows)).with_sentences(*missing, style="dim")


def estimates_table(evaluation: Evaluation) -> Table:
    """Return the two bounds of the roofline by target and case, with their sources; empty without an estimate."""
    rows = [
        replace(
            row(
                Cell(bounds.target, "key"),
                bounds.case,
                Cell(_sizes(bounds.sizes), "dim"),
                f"{bounds.low_us:,.4g}",
                "" if bounds.shared_us is None else f"{bounds.shared_us:,.4g}",
                f"{bounds.high_us:,.4g}",
                Cell(" to ".join(dict.fromkeys((bounds.bound_low, bounds.bound_high))), "dim"),
                estimate(bounds.high_us / bounds.low_us) if bounds.low_us > 0 else "",
            ),
            key=bounds.case,
        )
        for bounds in evaluation.estimate
    ]
    # The table already shows the sizes.
    sources = dict.fromkeys(bounds.basis.partition("; at ")[0] for bounds in evaluation.estimate)
    title = "estimate (roofline between two bounds, not a measurement)"
    return Table(title, ESTIMATE_COLUMNS, tuple(rows)).with_sentences(*sources, style="dim")


def _requested(traffic: Traffic | SampledTraffic) -> int:
    return traffic.requested_read_bytes + traffic.requested_write_bytes


def _excess(traffic: Traffic | SampledTraffic) -> str:
    return f"{_requested(traffic) / traffic.minimal_bytes:.2f}" if traffic.minimal_bytes else ""


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def case_sizes(evaluation: Evaluation) -> dict[str, str]:
    """Return the sizes at which a GPU runs each case, as far as the evaluation knows them: `rows=8192 cols=4097`."""
    estimated = {
        bounds.case: bounds.sizes
        for bounds in evaluation.estimate
        if bounds.case not in evaluation.not_sampled
    }
    sampled = {sample.case: sample.sizes for sample in evaluation.sampled}
    return {case: _sizes(sizes) for case, sizes in (sampled | estimated).items()}
