"""Tables of a kernel that no GPU timed: the bytes that the interpreter counted, and its compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness import Evaluation, Traffic, Verdict
from harness.wire.limits import memory_words
from harness.wire.results.evaluation import KernelResources
from sessions.state.figure_words import ratio_words
from sessions.state.ranking import lowest_occupancy, own_kernels, spill_count, traffic_excess
from sessions.state.state import AttemptState
from tui.facts.evaluation.task_cases import sizes_words
from tui.facts.tables import Column, Field, Number, Table, rows_of, table_of
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


def _largest(figure: Callable[[KernelResources], int | None]) -> Callable[[AttemptState], str]:
    """Return a function that gives the largest figure of an attempt's compiled kernels; empty if unknown."""

    def words(attempt: AttemptState) -> str:
        kernels = own_kernels(attempt.evaluation) if attempt.evaluation is not None else ()
        figures = [value for value in map(figure, kernels) if value is not None]
        return grouped(max(figures)) if figures else ""

    return words


def _excess(attempt: AttemptState) -> str:
    excess = traffic_excess(attempt.evaluation) if attempt.evaluation is not None else None
    return ratio_words(excess) if excess is not None else ""


def _launches(attempt: AttemptState) -> str:
    traffic = attempt.evaluation.traffic if attempt.evaluation is not None else ()
    return grouped(max(row.launches for row in traffic)) if traffic else ""


def _occupancy(attempt: AttemptState) -> str:
    lowest = lowest_occupancy(attempt.evaluation) if attempt.evaluation is not None else None
    return f"{lowest:g}" if lowest is not None else ""


ATTEMPTS: tuple[Field[AttemptState], ...] = (
    Field(Number("attempt", keep=True), lambda attempt: str(attempt.number)),
    Field(Number("requested/needed", keep=True), _excess),
    Field(Number("launches"), _launches),
    Field(Number("registers"), _largest(lambda kernel: kernel.vgprs or kernel.registers)),
    Field(Number("spills"), _largest(spill_count)),
    Field(Number("LDS bytes"), _largest(lambda kernel: kernel.lds_bytes)),
    Field(Number("occupancy"), _occupancy),
    Field(Number("waits", drop=1), _largest(lambda kernel: kernel.code.waits if kernel.code else None)),
)


def attempts_table(attempts: Sequence[AttemptState], shown: AttemptState) -> Table:
    """Return a row for each correct attempt of an instance, and which one is `shown`; empty with fewer than two.

    It shows without a GPU what changed from attempt to attempt.
    """
    correct = [attempt for attempt in attempts if attempt.verdict is Verdict.CORRECT]
    targets = shown.evaluation.resources if shown.evaluation is not None else {}
    if len(correct) < 2:
        return Table("")
    marked = Field[AttemptState](Column("", 1, 1), lambda attempt: ">" if attempt is shown else "", "key")
    fields = (marked, *ATTEMPTS)
    words = (
        f"Registers to waits: the largest of its kernels, compiled for {next(iter(targets), 'no target')}."
    )
    title = "correct attempts of this instance, one by one"
    return Table(title, tuple(field.column for field in fields), rows_of(fields, correct)).with_sentences(
        words, style="dim"
    )
