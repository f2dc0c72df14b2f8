"""`wavedeck ablate`: run one session per row of an ablation and report what each module of `geak` adds."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import msgspec

from engine.errors import EngineError
from engine.plan.ablation import METHOD, ROWS, Ablation, AblationRow, row_sessions, settle
from engine.process.keys import environment_with_keys
from engine.process.launch import resume, start
from harness import HarnessError
from sessions import fold
from sessions.catalog import Standing, journal_of
from sessions.errors import NothingToResume, SessionsError
from sessions.events import AnyEvent, CallFailed, EngineStopped, InstanceFinished, Notice
from sessions.files import locked
from sessions.home import Home, home_from
from suites import SuiteError
from tui.actions.run_plan import RECORDED, model_of, plan
from tui.commands.options import complete_tasks, setting_options
from tui.commands.watch.home import prepare_home
from tui.commands.watch.report import FORMATS
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.ablation import AblationReport, ablation_report
from tui.print.ablation_pages import as_csv, as_markdown, as_table
from tui.print.follow import EventPrinter, FollowEnding, follow
from tui.print.plain import emit, emit_json

LOCK = "ablate.lock"
"""Lock file in the home. Held while a row's session is looked up and started, so that two commands never start it twice."""
LOCK_WAIT_S = 120.0


@click.command(name="ablate")
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@setting_options(
    "suite",
    "model",
    "instances",
    "iterations",
    "devices",
    "targets",
    "budget-usd",
    "budget-tokens",
    "seed",
    model=f"As in run. With recorded:NAME, row r plays the r-th block of chains. [{RECORDED}]",
    instances="Independent chains on each task, in each row. [4, or as recorded]",
    budget_usd="Highest cost of each row (needs prices).",
    budget_tokens="Highest number of tokens of each row.",
    seed="Seed of the judge's inputs, in all rows. [random]",
)
@click.option("--anew", is_flag=True, help="Start a new ablation, even if one with the same settings exists.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    help="Format of the report. [table]",
    show_choices=True,
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def ablate_command(tasks: tuple[str, ...], *, anew: bool, form: str, as_json: bool, **flags: Any) -> ExitCode:
    """Run geak on TASKs once per row, with other modules switched off, and report what each module adds.

    Rows 1 to 4 add knowledge, 1-shot example and optimizer one after the other; rows 3 and 5 to 7 leave one module out.
    Each row is a session: watch it with attach, see it again with replay. Ctrl-C stops the current row, and the same command
    continues there. If all rows are finished, the command prints the report and runs nothing. Budgets hold for each row.
    """
    configured = load(
        {name.replace("_", "-"): value for name, value in flags.items()},
        environ=os.environ,
        folder=Path.cwd(),
    )
    for remark in configured.remarks:
        say(remark)
    home = home_from(os.environ)
    prepare_home(home)
    settings = msgspec.structs.replace(configured.settings, method=METHOD)
    model, remark = model_of(settings, configured.origins, environment_with_keys())
    if remark:
        say(remark)
    requested = plan(settings, tasks, model)
    ablation = settle(requested, home=home, environ=environment_with_keys(), anew=anew)
    say(
        f"{ablation.name}: {'continues' if ablation.sessions else 'begins'}; each of {len(ROWS)} rows is a session"
    )
    if ablation.outdated:
        say(f"{ablation.outdated} has the same settings but other prompts, so it is not continued")
    rows = AblationRun(home, ablation)
    code = rows.run()
    report = rows.report()
    match "json" if as_json else form:
        case "json":
            emit_json(report)
        case "csv":
            emit(as_csv(report))
        case "md":
            emit(as_markdown(report))
        case _:
            emit(as_table(report))
    say(next_step(report))
    return code


@dataclass(slots=True)
class AblationRun:
    """Runs the rows of an ablation one after the other."""

    home: Home
    ablation: Ablation
    failed: dict[int, str] = field(default_factory=dict)
    """Reason by row number, for rows that failed."""

    def run(self) -> ExitCode:
        """Run every row that is not finished. A failed row does not stop the next rows; an interrupt does."""
        for row in ROWS:
            try:
                completed = self._row(row)
            except (EngineError, HarnessError, SessionsError, SuiteError) as error:
                self.failed[row.number] = str(error)
                say(f"row {row.number}: {error}")
                continue
            if not completed:
                return ExitCode.INTERRUPTED
        return ExitCode.FAILED if self.failed else ExitCode.DONE

    def report(self) -> AblationReport:
        """Build the report from the events of the rows' sessions."""
        infos = row_sessions(self.home, self.ablation.name)
        states = {number: fold(journal_of(self.home, info.name).events) for number, info in infos.items()}
        standings = {number: info.state for number, info in infos.items()}
        return ablation_report(self.ablation, states, standings, self.failed)

    def _row(self, row: AblationRow) -> bool:
        """Run a row to its end, also if it fails; return `False` if the user stopped it."""
        off = f"without {', '.join(row.without)}" if row.without else "with all modules"
        session, is_new = self._session(row)
        if session is None:
            return True
        say(f"row {row.number} of {len(ROWS)}, {off}; watch it with: wavedeck attach {session}")
        printer = RowPrinter(row)
        printer.prime(() if is_new else journal_of(self.home, session).events)
        try:
            ending = asyncio.run(follow(self.home, session, printer, stoppable=True))
        except KeyboardInterrupt:
            say(f"{session} is still running; come back with: wavedeck attach {session}")
            return False
        if ending is FollowEnding.FAILED:
            self.failed[row.number] = printer.state.stopped or "the session failed"
        elif ending is FollowEnding.GONE:
            self.failed[row.number] = f"its engine ended without a message, see {self.home.live(session).log}"
        return ending is not FollowEnding.STOPPED

    def _session(self, row: AblationRow) -> tuple[str | None, bool]:
        """Start or resume the session of a row. Return its name (`None` if the row is finished) and whether it is new."""
        with locked(self.home.root / LOCK, wait_s=LOCK_WAIT_S) as locked_now:
            if not locked_now:
                raise Complaint(
                    f"another ablation has been starting a row for {LOCK_WAIT_S:g} s; end it or try again",
                    code=ExitCode.FAILED,
                )
            info = row_sessions(self.home, self.ablation.name).get(row.number)
            if info is None:
                return start(self.ablation.row_plan(row), self.home), True
            if info.state is Standing.FINISHED:
                say(f"row {row.number} of {len(ROWS)} is finished: {info.name}")
                return None, False
            if info.state is Standing.UNSTORED:
                with suppress(NothingToResume):
                    resume(self.home, info.name)
                return None, False
            if info.state is not Standing.RUNNING:
                resume(self.home, info.name)
            return info.name, False


class RowPrinter(EventPrinter):
    """Folds a row's events and prints the ends of instances and the failures on standard error."""

    def __init__(self, row: AblationRow) -> None:
        super().__init__(as_json=False)
        self._row = row

    def take(self, event: AnyEvent) -> None:
        """Fold the event; print its lines if an instance ended or something failed."""
        lines = self._narrator.lines(event)
        problem = isinstance(event, Notice) and event.level != "info"
        if problem or isinstance(event, InstanceFinished | CallFailed | EngineStopped):
            for line in lines:
                say(f"row {self._row.number}: {line}")


def next_step(report: AblationReport) -> str:
    """Return the next command for an ablation."""
    sessions = [
        row.session for row in report.rows if row.session is not None and row.state == Standing.FINISHED
    ]
    if len(sessions) < len(report.rows):
        return f"{len(sessions)} of {len(report.rows)} rows are finished; the same command runs the others"
    if report.model.startswith("recorded:"):
        return f"next: wavedeck report {' '.join(sessions)}"
    return f"record it to replay it at no cost: wavedeck record {' '.join(sessions)} NAME"
