"""`wavedeck compare`: two sessions at equal budget, and whether their difference is proven."""

from __future__ import annotations

import os

import click
import msgspec

from sessions.home import home_from
from sessions.metrics.equal_budget import EqualCost
from sessions.metrics.row_cache import rows_of_session
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint
from tui.facts.report.comparison import (
    ComparedSides,
    compare_sides,
    comparison_facts,
    comparison_sections,
    why_not_compared,
)
from tui.facts.report.document import Document
from tui.print.plain import emit, emit_json
from tui.print.report import PAGES


@click.command(name="compare")
@click.argument("first", metavar="A", shell_complete=complete_sessions)
@click.argument("second", metavar="B", shell_complete=complete_sessions)
@click.option(
    "--at",
    "budget",
    type=click.Choice([budget.value for budget in EqualCost]),
    default=EqualCost.ATTEMPTS.value,
    help="What is equal on both sides. [attempts]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "md", "json")),
    default="table",
    help="Format of the page. [table]",
)
def compare_command(first: str, second: str, *, budget: str, form: str) -> None:
    """Compare two sessions or studies, A and B, task by task at equal budget, and say whether a difference is proven.

    Solved tasks are compared by McNemar's exact test. Speedups of tasks that both solved are compared by a randomization test
    of their ratios, if the same hardware and software timed both. Each p is corrected for the number of comparisons.
    """
    names = [[opened.name for opened in open_sessions([wanted])] for wanted in (first, second)]
    if same := set(names[0]) & set(names[1]):
        raise Complaint(f"A and B have the same session, {min(same)}; name two")
    home = home_from(os.environ)
    rows = [[row for name in side for row in rows_of_session(home, name)] for side in names]
    for wanted, side in zip((first, second), rows, strict=True):
        if not side:
            raise Complaint(f"no attempt of {wanted} was judged yet, so there is nothing to compare")
    compared = compare_sides(rows[0], rows[1], EqualCost(budget))
    if why := why_not_compared(compared.comparison):
        raise Complaint(why)
    if form == "json":
        emit_json(comparison_json(compared))
    else:
        sections = tuple(comparison_sections(compared))
        emit(PAGES[form](Document("A and B compared", comparison_facts(compared), sections)))


def comparison_json(compared: ComparedSides) -> dict[str, object]:
    """Return the comparison for programs: its sides, and every figure."""
    return {"schema": 1, "sides": compared.sides} | msgspec.structs.asdict(compared.comparison)
