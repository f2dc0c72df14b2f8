"""Bytes that the interpreter counted or sampled, and the estimates that come from them."""

from __future__ import annotations

from harness import Estimate, Evaluation
from harness.wire.results.evaluation import SampledTraffic, Traffic
from sessions.state.ranking import estimate_coverage, estimated_slowdown
from tui.facts.evaluation.task_cases import sizes_words
from tui.facts.tables import Column, Field, Number, Table, table_of
from tui.facts.vocabulary import count, estimate, grouped, size

TRAFFIC: tuple[Field[Traffic], ...] = (
    Field(Column("case", keep=True), lambda traffic: traffic.case),
    Field(Column("sizes", drop=7), lambda traffic: sizes_words(traffic.sizes), "dim"),
    Field(Number("requested"), lambda traffic: size(_requested(traffic))),
    Field(
        Number("unique", drop=2), lambda traffic: size(traffic.unique_read_bytes + traffic.unique_write_bytes)
    ),
    Field(Number("minimal", drop=1), lambda traffic: size(traffic.minimal_bytes)),
    Field(Number("req/min"), lambda traffic: _excess(traffic)),
    Field(
        Number("dot FLOPs", if_known=True, drop=3),
        lambda traffic: count(traffic.dot_flops) if traffic.dot_flops else "",
    ),
    Field(Number("launches", drop=5), lambda traffic: grouped(traffic.launches)),
    Field(Number("programs", drop=6), lambda traffic: grouped(traffic.programs)),
)
SAMPLED: tuple[Field[SampledTraffic], ...] = (
    Field(Column("case", keep=True), lambda sample: sample.case),
    Field(Column("sizes", drop=7), lambda sample: sizes_words(sample.sizes), "dim"),
    Field(Number("requested"), lambda sample: size(_requested(sample))),
    Field(Number("on dies at most", drop=2), lambda sample: size(sample.die_bytes)),
    Field(Number("unique at most", drop=3), lambda sample: size(sample.unique_high_bytes)),
    Field(Number("minimal", drop=1), lambda sample: size(sample.minimal_bytes)),
    Field(Number("req/min"), lambda sample: _excess(sample)),
    Field(
        Number("programs sampled", drop=4),
        lambda sample: f"{grouped(sample.sampled)} of {grouped(sample.programs)}",
        "dim",
    ),
)
ESTIMATES: tuple[Field[Estimate], ...] = (
    Field(Column("target", keep=True), lambda bounds: bounds.target, "key"),
    Field(Column("case", keep=True), lambda bounds: bounds.case),
    Field(Column("sizes", drop=4), lambda bounds: sizes_words(bounds.sizes), "dim"),
    Field(Number("at best us"), lambda bounds: f"{bounds.low_us:,.4g}"),
    Field(
        Number("shared on dies us", if_known=True, drop=2),
        lambda bounds: "" if bounds.shared_us is None else f"{bounds.shared_us:,.4g}",
    ),
    Field(Number("uncached us", drop=3), lambda bounds: f"{bounds.high_us:,.4g}"),
    Field(
        Column("bound", drop=3),
        lambda bounds: " to ".join(dict.fromkeys((bounds.bound_low, bounds.bound_high))),
        "dim",
    ),
    Field(
        Number("of the roofline", drop=1),
        lambda bounds: estimate(bounds.ranked_us / bounds.low_us) if bounds.low_us > 0 else "",
    ),
)


def estimate_words(evaluation: Evaluation) -> str:
    """Return the estimate over the long cases as `est. 1.34x roof`, or `est. 1.34x roof, 2 of 5 cases`; empty without one."""
    slowdown = estimated_slowdown(evaluation)
    return (
        ""
        if slowdown is None
        else ", ".join(filter(None, (estimate(slowdown), estimate_coverage(evaluation))))
    )


def traffic_table(evaluation: Evaluation) -> Table:
    """Return the bytes of each case that the interpreter counted at `cpu` sizes; empty if it counted none."""
    return table_of("bytes moved, counted by the interpreter at CPU sizes", TRAFFIC, evaluation.traffic)


def sampled_table(evaluation: Evaluation) -> Table:
    """Return the bytes of each case at `gpu` sizes, an estimate, and why a case has none; empty if nothing is known."""
    missing = (f"{case} not sampled: {why}" for case, why in evaluation.not_sampled.items())
    title = "bytes at GPU sizes, an estimate from a sample of programs"
    return table_of(title, SAMPLED, evaluation.sampled).with_sentences(*missing, style="dim")


def estimates_table(evaluation: Evaluation) -> Table:
    """Return the two bounds of the roofline by target and case, with their sources; empty without an estimate."""
    # The table already shows the sizes.
    sources = dict.fromkeys(bounds.basis.partition("; at ")[0] for bounds in evaluation.estimate)
    title = "estimate (roofline between two bounds, not a measurement)"
    return table_of(title, ESTIMATES, evaluation.estimate).with_sentences(*sources, style="dim")


def _requested(traffic: Traffic | SampledTraffic) -> int:
    return traffic.requested_read_bytes + traffic.requested_write_bytes


def _excess(traffic: Traffic | SampledTraffic) -> str:
    return f"{_requested(traffic) / traffic.minimal_bytes:.2f}" if traffic.minimal_bytes else ""


def case_sizes(evaluation: Evaluation) -> dict[str, str]:
    """Return the sizes at which a GPU runs each case, as far as the evaluation knows them: `rows=8192 cols=4097`."""
    estimated = {
        bounds.case: bounds.sizes
        for bounds in evaluation.estimate
        if bounds.case not in evaluation.not_sampled
    }
    sampled = {sample.case: sample.sizes for sample in evaluation.sampled}
    return {case: sizes_words(sizes) for case, sizes in (sampled | estimated).items()}
