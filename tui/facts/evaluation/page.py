"""All facts of an evaluation in the order of the printed page."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Evaluation
from tui.facts.tables import Table

from .certainty import tolerance_table
from .counted import traffic_table
from .resources import resource_tables
from .stages import stages_table, trust_tables
from .times import serving_table, times_tables
from .verdict import FILE, error_table, headline, remark_tables


def evaluation_tables(evaluation: Evaluation, *, baseline: str = "", file: str = FILE) -> Iterator[Table]:
    """
    Yield all facts of an evaluation; a table without content may be among them.

    `baseline` is the name of the baseline for latencies without a name; `file` that of the candidate's file.
    """
    words = headline(evaluation, baseline=baseline, file=file)
    where = f" on {evaluation.device}" if evaluation.device else ""
    yield Table("").with_sentences(f"{evaluation.task}{where}: {words}")
    yield stages_table(evaluation.stages, beside=words)
    yield error_table(evaluation.error, file)
    yield tolerance_table(evaluation)
    yield from times_tables(evaluation, baseline)
    yield serving_table(evaluation)
    yield from resource_tables(evaluation)
    yield traffic_table(evaluation)
    yield from remark_tables(evaluation)
    yield from trust_tables(evaluation)
