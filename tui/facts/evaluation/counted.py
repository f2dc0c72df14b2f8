"""Bytes that the interpreter counted."""

from __future__ import annotations

from harness import Evaluation, Traffic
from harness.wire.limits import memory_words
from sessions.state.figure_words import ratio_words
from sessions.state.ranking import traffic_excess
from tui.facts.evaluation.task_cases import sizes_words
from tui.facts.tables import Column, Field, Number, Table, table_of
from tui.facts.vocabulary import count, grouped

TRAFFIC: tuple[Field[Traffic], ...] = (
    Field(Column("case", keep=True), lambda traffic: traffic.case),
    Field(Column("sizes", drop=7), lambda traffic: sizes_words(traffic.sizes), "dim"),
    Field(Number("requested"), lambda traffic: memory_words(traffic.requested_bytes)),
    Field(
        Number("unique", drop=2),
        lambda traffic: memory_words(traffic.unique_read_bytes + traffic.unique_write_bytes),
    ),
    Field(
        Number("needed", drop=1), lambda traffic: memory_words(traffic.needed_bytes or traffic.minimal_bytes)
    ),
    Field(
        Number("requested/needed"),
        lambda traffic: "" if traffic.excess is None else f"{traffic.excess:.2f}",
    ),
    Field(
        Number("dot FLOPs", if_known=True, drop=3),
        lambda traffic: count(traffic.dot_flops) if traffic.dot_flops else "",
    ),
    Field(Number("launches", drop=5), lambda traffic: grouped(traffic.launches)),
    Field(Number("programs", drop=6), lambda traffic: grouped(traffic.programs)),
)


def traffic_words(evaluation: Evaluation) -> str:
    """Return requested over needed bytes of all cases as `traffic 1.34x`; empty if unknown."""
    excess = traffic_excess(evaluation)
    return "" if excess is None else f"traffic {ratio_words(excess)}"


def traffic_table(evaluation: Evaluation) -> Table:
    """Return the bytes of each case at `cpu` sizes, and why a case was not run at its `gpu` sizes; empty without both."""
    title = "bytes moved, counted by the interpreter at CPU sizes"
    silent = (f"{case} not run at GPU sizes: {why}" for case, why in evaluation.not_sampled.items())
    return table_of(title, TRAFFIC, evaluation.traffic).with_sentences(*silent, style="dim")
