"""The winners of several sessions in one table."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.names import short_task
from tui.tables import Column
from tui.vocabulary import UNKNOWN

from .model import SessionReport, Winner
from .phrases import cases_words, decision_words, exact_words, exam_words, figure_words, interval_words
from .section import Section

CAUTION = "Compare only rows with the same baseline and the same device."


def ranked_winners(reports: Sequence[SessionReport]) -> list[tuple[SessionReport, Winner]]:
    """Return the winners with their sessions: by task in order of appearance, the fastest first."""
    tasks = dict.fromkeys(winner.task for report in reports for winner in report.winners)
    return [
        entry
        for task in tasks
        for entry in sorted(
            ((report, winner) for report in reports for winner in report.winners if winner.task == task),
            key=lambda entry: -entry[1].speed.value if entry[1].speed is not None else 0.0,
        )
    ]


def are_comparable(winners: Sequence[Winner]) -> bool:
    """True if all timed winners have the same baseline and the same product."""
    timed = [winner for winner in winners if winner.speed is not None]
    return len({(winner.against, winner.device.partition(" ")[2]) for winner in timed}) <= 1


def merged_section(reports: Sequence[SessionReport]) -> Section:
    """Return the winners of several sessions in one table: by task in order of appearance, the fastest first."""
    ranked = ranked_winners(reports)
    comparable = are_comparable([winner for _, winner in ranked])
    return Section(
        "Winners of all sessions",
        sentences=() if comparable else (CAUTION,),
        columns=(
            Column("task", keep=True),
            Column("speedup", right=True, if_known=True),
            Column("95 %", right=True, if_known=True),
            Column("cases", right=True, if_known=True),
            Column("exact cases", right=True, if_known=True),
            Column("remark", if_known=True),
            Column("exam"),
            Column("decision", if_known=True),
            Column("against", if_known=True),
            Column("device", if_known=True),
            Column("attempt", keep=True),
            Column("session", keep=True),
        ),
        rows=tuple(
            (
                short_task(winner.task),
                figure_words(winner.speed),
                interval_words(winner.speed),
                cases_words(winner.speed),
                exact_words(winner.speed),
                winner.no_speed or UNKNOWN,
                exam_words(winner),
                decision_words(winner),
                winner.against or UNKNOWN,
                winner.device or UNKNOWN,
                winner.attempt,
                report.summary.session,
            )
            for report, winner in ranked
        ),
    )
