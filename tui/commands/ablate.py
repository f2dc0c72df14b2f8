"""`wavedeck ablate`: what each module of `geak` adds, one session a row."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import msgspec

from engine.ablation import METHOD, ROWS, Ablation, AblationRow, row_sessions, settle
from engine.errors import EngineError
from engine.launch import resume, start
from harness import HarnessError
from sessions import fold
from sessions.catalog import Standing, journal_of
from sessions.errors import SessionsError
from sessions.events import AnyEvent, CallFailed, EngineStopped, InstanceFinished, Notice
from sessions.files import locked
from sessions.home import Home, home_from
from suites import SuiteError
from tui.ablating import ToldAblation, as_csv, as_markdown, as_table, told_ablation
from tui.commands.options import complete_tasks, targets_option
from tui.commands.report import FORMATS
from tui.commands.run import RECORDED, model_of, plan
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.follow import Ending, Telling, follow
from tui.plain import emit, emit_json

LOCK = "ablate.lock"
"""In the home; held while a row's session is looked for and started, so that two commands never start it twice."""
LOCK_WAIT_S = 120.0


@click.command(name="ablate")
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@click.option("--suite", help="Take every task of this suite. [starter]")
@click.option(
    "--model",
    metavar="P:NAME",
    help=f"As in run. Of recorded:NAME, row r plays the r-th stretch of chains. [{RECORDED}]",
)
@click.option(
    "--instances",
    type=int,
    metavar="N",
    help="Independent chains on each task, in each row. [4, or what is recorded]",
)
@click.option("--iterations", type=int, metavar="N", help="Attempts of each chain. [10, or what is recorded]")
@click.option("--devices", metavar="NAMES", help="Where to judge: idle, all, 0,1 or cpu. [idle]")
@targets_option
@click.option(
    "--budget-usd", type=float, metavar="X", help="For each row: no more calls once this much is spent."
)
@click.option(
    "--budget-tokens", type=int, metavar="N", help="For each row: no more calls once so many tokens are used."
)
@click.option(
    "--seed", type=int, metavar="N", help="Where the judge's inputs come from, in all rows. [drawn anew]"
)
@click.option(
    "--anew", is_flag=True, help="Run every row, though there is an ablation with the same settings."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    help="How to tell it. [table]",
    show_choices=True,
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def ablate_command(tasks: tuple[str, ...], *, anew: bool, form: str, as_json: bool, **flags: Any) -> ExitCode:
    """Run geak on TASKs once a row with other modules switched off, and tell what each module adds.

    Rows 1 to 4 add knowledge, 1-shot example and optimizer one after the other; rows 3 and 5 to 7 leave one module out. A row is
    a session: watch it with attach, see it again with replay. Ctrl-C stops the row under way; the same command goes on where it
    was, and where all rows are finished it tells them again and runs nothing. Budgets are of each row, not of all.
    """
    configured = load(
        {name.replace("_", "-"): value for name, value in flags.items()},
        environ=os.environ,
        folder=Path.cwd(),
    )
    for remark in configured.remarks:
        say(remark)
    home = home_from(os.environ)
    home.ensure()
    settings = msgspec.structs.replace(configured.settings, method=METHOD)
    asked = plan(settings, tasks, model_of(settings, configured.origins, os.environ))
    ablation = settle(asked, home=home, environ=os.environ, anew=anew)
    say(
        f"{ablation.name}: {'goes on' if ablation.sessions else 'begins'}; each of {len(ROWS)} rows is a session"
    )
    if ablation.outdated:
        say(
            f"{ablation.outdated} has the same settings and was made with other prompts, so it is not gone on with"
        )
    course = Course(home, ablation)
    code = course.run()
    told = course.told()
    match "json" if as_json else form:
        case "json":
            emit_json(told)
        case "csv":
            emit(as_csv(told))
        case "md":
            emit(as_markdown(told))
        case _:
            emit(as_table(told))
    say(next_step(told))
    return code


@dataclass(slots=True)
class Course:
    """An ablation on its way, row after row."""

    home: Home
    ablation: Ablation
    failed: dict[int, str] = field(default_factory=dict)
    """By number of the row, why it did not come to its end."""

    def run(self) -> ExitCode:
        """Bring every row to its end. One that fails does not hold up the others; one that a person stops does."""
        for row in ROWS:
            try:
                ended = self._row(row)
            except (EngineError, HarnessError, SessionsError, SuiteError) as error:
                self.failed[row.number] = str(error)
                say(f"row {row.number}: {error}")
                continue
            if not ended:
                return ExitCode.INTERRUPTED
        return ExitCode.FAILED if self.failed else ExitCode.DONE

    def told(self) -> ToldAblation:
        """What the rows have to show, from their sessions' events."""
        known = row_sessions(self.home, self.ablation.name)
        states = {number: fold(journal_of(self.home, each.name).events) for number, each in known.items()}
        standings = {number: each.state for number, each in known.items()}
        return told_ablation(self.ablation, states, standings, self.failed)

    def _row(self, row: AblationRow) -> bool:
        """Bring a row to its end, whether well or not; `False` when a person stopped it."""
        off = f"without {', '.join(row.without)}" if row.without else "with all modules"
        session, fresh = self._session(row)
        if session is None:
            return True
        say(f"row {row.number} of {len(ROWS)}, {off}; watch it with: wavedeck attach {session}")
        telling = RowTelling(row)
        telling.prime(() if fresh else journal_of(self.home, session).events)
        try:
            ending = asyncio.run(follow(self.home, session, telling, stoppable=True))
        except KeyboardInterrupt:
            say(f"{session} goes on; come back with: wavedeck attach {session}")
            return False
        if ending is Ending.FAILED:
            self.failed[row.number] = telling.state.stopped or "the session failed"
        elif ending is Ending.GONE:
            self.failed[row.number] = f"its engine ended without a word, see {self.home.live(session).log}"
        return ending is not Ending.STOPPED

    def _session(self, row: AblationRow) -> tuple[str | None, bool]:
        """The running session of a row, started or taken up where it must be, and whether it is new; none where it is finished."""
        with locked(self.home.root / LOCK, wait_s=LOCK_WAIT_S) as got:
            if not got:
                raise Complaint(
                    "another ablation is starting a row and does not get done; end it, or try again",
                    code=ExitCode.FAILED,
                )
            known = row_sessions(self.home, self.ablation.name).get(row.number)
            if known is None:
                return start(self.ablation.row_plan(row), self.home), True
            if known.state is Standing.FINISHED:
                say(f"row {row.number} of {len(ROWS)} is finished: {known.name}")
                return None, False
            if known.state is not Standing.RUNNING:
                resume(self.home, known.name)
            return known.name, False


class RowTelling(Telling):
    """Folds a row's events and says on standard error what a person who waits for the table should know."""

    def __init__(self, row: AblationRow) -> None:
        super().__init__(as_json=False)
        self._row = row

    def take(self, event: AnyEvent) -> None:
        """Fold the event; ends of instances and troubles are said."""
        lines = self._narrator.tell(event)
        trouble = isinstance(event, Notice) and event.level != "info"
        if trouble or isinstance(event, InstanceFinished | CallFailed | EngineStopped):
            for line in lines:
                say(f"row {self._row.number}: {line}")


def next_step(told: ToldAblation) -> str:
    """What a person does with an ablation."""
    sessions = [
        row.session for row in told.rows if row.session is not None and row.state == Standing.FINISHED
    ]
    if len(sessions) < len(told.rows):
        return f"{len(sessions)} of {len(told.rows)} rows are finished; the same command goes on where it was"
    if told.model.startswith("recorded:"):
        return f"next: wavedeck report {' '.join(sessions)}"
    return f"it can be played again at no cost, once recorded: wavedeck record {' '.join(sessions)} NAME"
