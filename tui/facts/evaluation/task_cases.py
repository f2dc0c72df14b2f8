"""The cases of a task with their sizes and tolerances."""

from __future__ import annotations

from collections.abc import Mapping

from suites import Case, Task, Tolerance
from suites.tolerances import allowance_words, tolerance_of
from tui.facts.tables import Column, Field, Number, Table, table_of
from tui.facts.vocabulary import percent


def cases_table(task: Task, title: str = "") -> Table:
    """Return a row for each case of a task, also those of the exam."""
    shares = task.shares
    fields: tuple[Field[Case], ...] = (
        Field(Column("case", keep=True), lambda case: case.name),
        Field(Column("dtype", keep=True), lambda case: case.dtype),
        Field(Column("values", keep=True), lambda case: f"{case.distribution}"),
        Field(Column("on cpu"), lambda case: sizes_words(case.cpu)),
        Field(Column("on a GPU"), lambda case: sizes_words(case.gpu)),
        Field(Column("for", keep=True, if_known=True), lambda case: "exam" if case.exam else ""),
        Field(Number("share of time", if_known=True), lambda case: percent(shares.get(case.name))),
        Field(Column("tolerance"), lambda case: tolerances_of(task, case)),
    )
    return table_of(title, fields, task.cases)


def sizes_words(sizes: Mapping[str, int]) -> str:
    """Return sizes on one line: `rows=8192 cols=4097`."""
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def tolerances_of(task: Task, case: Case) -> str:
    """Return the tolerances of a case's outputs; with the names of the outputs if the tolerances differ."""
    if task.quantization is not None:
        limits = task.quantization
        return f"cosine {limits.cosine_min:g}, L1 {limits.relative_l1_max:g}, RMSE {limits.rmse_max:g}"
    by_output = {output.name: allowed(tolerance_of(task, output, case)) for output in task.outputs_of(case)}
    if len(set(by_output.values())) == 1:
        return next(iter(by_output.values()))
    return "; ".join(f"{name}: {words}" for name, words in by_output.items())


def allowed(limit: Tolerance) -> str:
    """Return the keys of a tolerance that are not 0, or `exact`."""
    words = allowance_words(limit)
    if limit.measured:
        return f"careful arithmetic, and {words}" if words else "careful arithmetic"
    return words or "exact"
