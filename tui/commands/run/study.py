"""`wavedeck study`: run the sessions of a plan one after the other."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import msgspec
from click.shell_completion import CompletionItem

from engine.errors import EngineError
from engine.keys import environment_with_keys
from engine.plan.plan import SessionPlan, resolve
from engine.plan.request import RunPlan
from engine.process.launch import resume, start
from harness import HarnessError
from sessions import SessionState
from sessions.catalog import (
    SessionInfo,
    Standing,
    StudySessions,
    find_study,
    list_sessions,
    session_state,
    study_sessions,
)
from sessions.errors import NoSuchSession, NothingToResume, SessionsError
from sessions.events import AnyEvent, CallFailed, EngineStopped, InstanceFinished, Notice
from sessions.files import locked
from sessions.home import Home, home_from
from sessions.names import split_series
from sessions.settings import RunSettings
from suites import SuiteError, public_suite_names
from tui.actions.run_estimates import EstimatedRange, estimate_cell, total
from tui.actions.study_plan import Study, read_study, shipped_plans
from tui.commands.look.home import prepare_home
from tui.commands.options import complete_sessions, complete_tasks, json_option, setting_options, yes_option
from tui.commands.sections import Sectioned
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.settings_words import method_words
from tui.facts.tables import Column, Number
from tui.facts.vocabulary import counted, duration, money
from tui.print.follow import EventPrinter, FollowEnding, follow
from tui.print.plain import emit, emit_json, table

LOCK = "study.lock"
"""Lock file in the home. Held while the session of a cell is looked up and started, so that two commands never start it twice."""
LOCK_WAIT_S = 120.0


def print_studies(*, as_json: bool) -> None:
    """Print the studies of the home with their cells, newest last, and the plans that ship."""
    rows = [
        (name, len(infos), count_finished(infos))
        for name, infos in study_sessions(home_from(os.environ)).items()
    ]
    if as_json:
        emit_json(
            {
                "studies": [dict(zip(("name", "sessions", "finished"), row, strict=True)) for row in rows],
                "plans": shipped_plans(),
            }
        )
        return
    if rows:
        columns = (Column("study"), Number("sessions"), Number("finished"))
        emit(table(columns, [[str(cell) for cell in row] for row in rows]) + "\n")
    emit(f"plans that ship: {', '.join(shipped_plans())}; run one with: wavedeck study PLAN")


def complete_plans(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the studies of the home and the plans that ship, that start with the typed text; a shell completes files too."""
    studies = [item for item in complete_sessions(ctx, param, incomplete) if item.help == "study"]
    plans = [CompletionItem(name) for name in shipped_plans() if name.startswith(incomplete)]
    return [*studies, *plans, CompletionItem(incomplete, type="file")]


@click.command(name="study", cls=Sectioned)
@click.argument("word", metavar="[PLAN|STUDY]", required=False, shell_complete=complete_plans)
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@setting_options(
    "suite",
    "model",
    "devices",
    "targets",
    suite="Take the tasks of this suite. [as the plan says, else starter]",
    model="Model instead of the plan's; a method's own models stay. [as the plan says]",
)
@click.option("--dry-run", is_flag=True, help="Print the cells and the estimate, and end.")
@yes_option
@json_option
def study_command(
    word: str | None, tasks: tuple[str, ...], *, dry_run: bool, yes: bool, as_json: bool, **flags: Any
) -> ExitCode:
    """Run methods, models and seeds of a PLAN, one session each: every cell that is not finished, one after the other.

    PLAN is a TOML file, or the name of a plan that ships; TASKs replace its tasks. The name of a study of this home shows its
    cells with their states. Without either: the studies, and the plans that ship. --json is for these two.

    Ctrl-C stops the current cell, and the same command goes on there. A cell that fails does not stop the next one. Exit code:
    3 if a cell failed, 1 if you say no.
    """
    if word is None:
        print_studies(as_json=as_json)
        return ExitCode.DONE
    configured = load(flags, environ=os.environ, folder=Path.cwd())
    for remark in configured.remarks:
        say(remark)
    home, environ = home_from(os.environ), environment_with_keys()
    if not (word.endswith(".toml") or word in shipped_plans()) and (named := study_named(home, word)):
        print_cells(named, as_json=as_json)
        return ExitCode.DONE
    if as_json:
        raise Complaint("--json is for the name of a study; leave it out to run a plan")
    study = read_study(word, tasks, configured, registry=home.suites)
    infos = study_sessions(home).get(study.name, {})
    is_finished = count_finished(infos) == len(study.cells)
    if not (dry_run or yes or is_finished or (sys.stdin is not None and sys.stdin.isatty())):
        raise Complaint(
            "there is no terminal to ask whether to begin: add -y, or --dry-run to read the cells"
        )
    if not (dry_run or is_finished):
        prepare_home(home)
        study = _recorded(study, home)
    plans = resolved(study.cells, home, None if dry_run or is_finished else environ)
    cells = dict(enumerate(plans, start=1))
    emit(cells_table(cells, infos))
    if is_finished:
        emit(f"\n{study.name} is finished; next: wavedeck report {study.name}")
        return ExitCode.DONE
    emit("")
    for line in (
        f"study {study.name}, from {study.file}",
        f"tasks: {', '.join(study.coverage)}",
        *estimate_lines(plans, infos, list_sessions(home)),
    ):
        emit(line)
    if dry_run:
        return ExitCode.DONE
    if not yes and not click.confirm("Begin?", default=False, err=True):
        say("nothing was started")
        return ExitCode.NO
    run = StudyRun(home, study)
    code = run.run()
    emit("")
    infos = study_sessions(home).get(study.name, {})
    emit(cells_table(cells, infos, run.failed))
    finished = count_finished(infos)
    if finished < len(plans):
        emit(f"\n{finished} of {len(plans)} cells are finished; the same command runs the others")
    emit(f"\nnext: wavedeck report {study.name}")
    return code


def study_named(home: Home, word: str) -> StudySessions | None:
    """Return the study with this name or unique prefix; `None` if there is none."""
    try:
        return find_study(home, word)
    except NoSuchSession:
        return None


def print_cells(study: StudySessions, *, as_json: bool) -> None:
    """Print the cells of a study of the home that have a session, with their states."""
    if as_json:
        emit_json([info.document() for info in study.sessions])
        return
    infos = {split_series(info.settings.series).cell: info for info in study.sessions}
    whole = max(info.settings.cells for info in infos.values())
    missing = f"\n{whole - len(infos)} of {counted(whole, 'cell')} have no session yet; the plan runs them"
    cells = cells_table({number: info.settings for number, info in infos.items()}, infos)
    emit(
        f"study {study.study}\n\n{cells}\n{missing if whole > len(infos) else ''}"
        f"\nnext: wavedeck report {study.study}"
    )


def count_finished(infos: Mapping[int, SessionInfo]) -> int:
    """Return the number of sessions that are finished and in the store."""
    return sum(info.state is Standing.FINISHED for info in infos.values())


def resolved(cells: Sequence[RunPlan], home: Home, environ: Mapping[str, str] | None) -> list[SessionPlan]:
    """Return the checked plans of all cells; cells that differ in their seed are checked once. Raises as `resolve`."""
    checked: dict[bytes, SessionPlan] = {}
    plans = []
    for cell in cells:
        key = msgspec.json.encode(msgspec.structs.replace(cell, seed=0, series=""))
        if key not in checked:
            checked[key] = resolve(cell, home=home, environ=environ)
        plans.append(msgspec.structs.replace(checked[key], seed=cell.seed, series=cell.series))
    return plans


def _recorded(study: Study, home: Home) -> Study:
    """Record the named tasks of public benchmarks that were not recorded yet."""
    cells = study.cells
    tasks = cells[0].tasks
    if not {task.partition("/")[0] for task in tasks} & set(public_suite_names(registry=home.suites)):
        return study
    # Imported here: it needs the judge's modules.
    from tui.commands.keep.recording import record_missing

    named = record_missing(tasks, home.suites, devices=cells[0].devices, targets=cells[0].targets)
    for task, why in named.left_out.items():
        say(f"{task} is left out: {why}")
    changes = {"tasks": named.ready, "left_out": named.left_out}
    return msgspec.structs.replace(
        study, cells=tuple(msgspec.structs.replace(cell, **changes) for cell in cells)
    )


def cells_table(
    cells: Mapping[int, RunSettings],
    infos: Mapping[int, SessionInfo],
    failed: Mapping[int, str] | None = None,
) -> str:
    """Return the cells by number with the state of their sessions."""
    columns = (
        *(Number("cell"), Column("method", keep=True), Column("model", drop=1), Number("seed", drop=2)),
        *(Number("tasks"), Number("chains x iterations"), Column("session", if_known=True, keep=True)),
        *(Column("state", keep=True), Number("solved", if_known=True), Number("attempts", if_known=True)),
        Number("cost", if_known=True),
    )
    rows = []
    for number, cell in cells.items():
        method, model = cell.label or method_words(cell.method, cell.options), cell.model_label or cell.model
        size = f"{cell.instances} x {cell.iterations}"
        results = ("", "not run", "", "", "")
        if (info := infos.get(number)) is not None:
            state = "failed" if number in (failed or {}) else info.state
            cost = "" if info.cost_usd is None else money(info.cost_usd)
            results = (info.name, state, str(len(info.solved)), str(info.attempts), cost)
        rows.append((str(number), method, model, str(cell.seed), str(len(cell.tasks)), size, *results))
    return table(columns, rows)


def estimate_lines(
    plans: Sequence[SessionPlan], infos: Mapping[int, SessionInfo], past: Sequence[SessionInfo]
) -> list[str]:
    """Return the estimates of the cells that are not finished, in words."""
    unfinished = [
        (plan, infos.get(number))
        for number, plan in enumerate(plans, start=1)
        if number not in infos or infos[number].state is not Standing.FINISHED
    ]
    cells = [estimate_cell(plan, 0 if info is None else info.attempts, past) for plan, info in unfinished]
    sessions = frozenset[str]().union(*(cell.sessions for cell in cells))
    foreign = sum(cell.is_foreign for cell in cells)
    starts = any(plan.options.start or "recorded:" in plan.model for plan, _ in unfinished)
    lines = [
        f"{counted(len(cells), 'cell')} to run, at most {counted(sum(cell.attempts for cell in cells), 'attempt')}"
        + (" besides the kernels to start from" if starts else ""),
        _estimate_line("cost", [cell.cost_usd for cell in cells], money),
        _estimate_line("time", [cell.wall_s for cell in cells], duration),
    ]
    if sessions:
        lines.append(
            f"estimates, if every attempt is made: figures per attempt of {counted(len(sessions), 'past session')}"
            + (
                f"; in {counted(foreign, 'cell')} tokens of other models at this model's price"
                if foreign
                else ""
            )
        )
    return lines


def _estimate_line(name: str, ranges: Sequence[EstimatedRange | None], words: Any) -> str:
    whole, unknown = total(ranges), ranges.count(None)
    if whole is None:
        return f"{name}: unknown, because no past session of this home shows it"
    if name == "cost" and not (whole.high or unknown):
        return "cost: none, because no model is asked"
    between = f" ({words(whole.low)} to {words(whole.high)})" if whole.low < whole.high else ""
    besides = f"; unknown for {counted(unknown, 'further cell')}" if unknown else ""
    return f"{name}: about {words(whole.median)}{between}{besides}"


@dataclass(slots=True)
class StudyRun:
    """Runs the cells of a study one after the other."""

    home: Home
    study: Study
    failed: dict[int, str] = field(default_factory=dict)
    """Reason by number, for cells that failed."""

    def run(self) -> ExitCode:
        """Run every cell that is not finished. A failed cell does not stop the next ones; an interrupt does."""
        for number, plan in enumerate(self.study.cells, start=1):
            try:
                completed = self._cell(number, plan)
            except (EngineError, HarnessError, SessionsError, SuiteError) as error:
                self.failed[number] = str(error)
                say(f"cell {number}: {error}")
                continue
            if not completed:
                return ExitCode.INTERRUPTED
        return ExitCode.FAILED if self.failed else ExitCode.DONE

    def _cell(self, number: int, plan: RunPlan) -> bool:
        """Run a cell to its end, also if it fails; return `False` if the user stopped it."""
        session, is_new = self._session(number, plan)
        if session is None:
            return True
        place = f"cell {number} of {len(self.study.cells)}"
        name = plan.label or method_words(plan.method, plan.options)
        say(f"{place}, {name}; watch it with: wavedeck attach {session}")
        printer = CellPrinter(number, None if is_new else session_state(self.home, session))
        try:
            ending = asyncio.run(follow(self.home, session, printer, stoppable=True))
        except KeyboardInterrupt:
            say(f"{session} is still running; come back with: wavedeck attach {session}")
            return False
        if ending is FollowEnding.FAILED:
            self.failed[number] = printer.state.stopped or "the session failed"
        elif ending is FollowEnding.GONE:
            self.failed[number] = f"its engine ended without a message, see {self.home.files(session).log}"
        say(f"{place}: {self.failed.get(number, ending.value)}; {self._progress()}")
        return ending is not FollowEnding.STOPPED

    def _progress(self) -> str:
        """Return what the study did so far: `so far: 2 of 4 cells, 48 attempts, $0.31, 12 min 5 s`."""
        infos = study_sessions(self.home).get(self.study.name, {})
        costs = [info.cost_usd for info in infos.values() if info.cost_usd is not None]
        parts = (
            f"so far: {count_finished(infos)} of {len(self.study.cells)} cells",
            counted(sum(info.attempts for info in infos.values()), "attempt"),
            money(sum(costs)) if costs else "",
            duration(sum(info.worked_s or 0.0 for info in infos.values())),
        )
        return ", ".join(filter(None, parts))

    def _session(self, number: int, plan: RunPlan) -> tuple[str | None, bool]:
        """Start or resume the session of a cell. Return its name (`None` if it is finished) and whether it is new."""
        with locked(self.home.root / LOCK, wait_s=LOCK_WAIT_S) as locked_now:
            if not locked_now:
                raise Complaint(
                    f"another study has been starting a cell for {LOCK_WAIT_S:g} s; end it or try again",
                    code=ExitCode.FAILED,
                )
            info = study_sessions(self.home).get(self.study.name, {}).get(number)
            if info is None:
                return start(plan, self.home), True
            if info.state is Standing.FINISHED:
                return None, False
            if info.state is Standing.UNSTORED:
                with suppress(NothingToResume):
                    resume(self.home, info.name)
                return None, False
            if info.state is not Standing.RUNNING:
                resume(self.home, info.name)
            return info.name, False


class CellPrinter(EventPrinter):
    """Folds a cell's events and prints the ends of instances and the failures on standard error."""

    def __init__(self, number: int, past: SessionState | None) -> None:
        super().__init__(past, as_json=False)
        self._number = number

    def take(self, event: AnyEvent) -> None:
        """Fold the event; print its lines if an instance ended or something failed."""
        lines = self._narrator.lines(event)
        problem = isinstance(event, Notice) and event.level != "info"
        if problem or isinstance(event, InstanceFinished | CallFailed | EngineStopped):
            for line in lines:
                say(f"cell {self._number}: {line}")
