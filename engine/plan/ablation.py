"""Ablations of the method `geak`: one session for each row, with other modules off in each row.

All sessions of one ablation carry its name in `series`, so that an interrupted ablation is found and continued.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from engine.errors import UsageProblem
from engine.models import find_recording, recording_of
from engine.plan.plan import RunPlan, SessionPlan, resolve
from engine.prompting.prompting import template_hashes
from sessions.catalog import SessionInfo, journal_of, list_sessions
from sessions.events import SessionStarted
from sessions.home import Home
from sessions.names import short_task
from sessions.recording import Recording, load_recording
from sessions.settings import SessionDescription

METHOD = "geak"
PREFIX = "ablation-"


class AblationRow(NamedTuple):
    """One row of an ablation: the modules that are off."""

    number: int
    without: tuple[str, ...]


ROWS = (
    AblationRow(1, ("knowledge", "one-shot", "optimizer")),
    AblationRow(2, ("one-shot", "optimizer")),
    AblationRow(3, ("optimizer",)),
    AblationRow(4, ()),
    AblationRow(5, ("knowledge",)),
    AblationRow(6, ("one-shot",)),
    AblationRow(7, ("reflection",)),
)
"""Rows 1 to 4 add one module at a time, as in GEAK's paper; reflection is on in these rows. Rows 3 and 5 to 7 each
leave one module out of row 4. Row 3 belongs to both groups."""


class Contribution(NamedTuple):
    """The effect of one module: the difference of two rows."""

    module: str
    to: str
    """The modules that are on besides it, in words."""
    on: int
    """Number of the row with the module."""
    off: int
    """Number of the row without the module."""


CONTRIBUTIONS = (
    Contribution("knowledge", "reflection alone", 2, 1),
    Contribution("one-shot", "knowledge, reflection", 3, 2),
    Contribution("optimizer", "all others", 4, 3),
    Contribution("knowledge", "all others", 4, 5),
    Contribution("one-shot", "all others", 4, 6),
    Contribution("reflection", "all others", 4, 7),
)


@dataclass(frozen=True, slots=True)
class Ablation:
    """The plan that all rows share, and the sessions that exist already."""

    name: str
    plan: RunPlan
    """The plan of every row; a row sets only `without` and the chains of a recording."""
    checked: SessionPlan
    """`plan` with every default filled in."""
    sessions: Mapping[int, SessionInfo]
    """The newest session of each row, by row number."""
    outdated: str = ""
    """Name of an ablation with the same settings and other prompt templates; empty if one with these templates
    exists."""

    def row_plan(self, row: AblationRow) -> RunPlan:
        """Returns the plan of a row's session. With a recording, each row plays chains of its own."""
        return msgspec.structs.replace(
            self.plan,
            options=msgspec.structs.replace(self.plan.options, without=row.without),
            first_chain=(row.number - 1) * self.checked.instances + 1,
            series=self.name,
        )


def settle(
    request: RunPlan,
    *,
    home: Home,
    environ: Mapping[str, str],
    anew: bool = False,
    now: datetime | None = None,
) -> Ablation:
    """Returns the newest ablation with the same settings; a new ablation if there is none or with `anew`.

    The settings are tasks, model, instances, iterations, seed (if the person named one), devices, targets, budgets,
    timing baseline, options and prompt templates. Raises `UsageProblem` if the run is impossible, for example if a
    recording has too few chains.
    """
    plan = msgspec.structs.replace(
        request,
        method=METHOD,
        review="auto",
        stop_rules=False,
        allocate="even",
        options=msgspec.structs.replace(request.options, without=()),
    )
    recording = _recording(plan, home)
    if recording is not None:
        plan = msgspec.structs.replace(plan, instances=_instances(plan, home, environ, recording))
    checked = resolve(plan, home=home, environ=environ)
    fitting = () if anew else _fitting_series(checked, home, seed_asked=request.seed is not None)
    match = next((series for series in fitting if series.templates == template_hashes()), None)
    outdated = fitting[0].name if fitting and match is None else ""
    if match is None:
        match = _Series(_fresh_name(now or datetime.now(UTC)), checked.seed, {}, {})
    settled = msgspec.structs.replace(
        plan,
        tasks=checked.tasks,
        suite=None,
        instances=checked.instances,
        iterations=checked.iterations,
        devices=checked.devices,
        targets=checked.targets,
        seed=match.seed,
    )
    return Ablation(
        match.name, settled, msgspec.structs.replace(checked, seed=match.seed), match.sessions, outdated
    )


def row_sessions(home: Home, name: str) -> dict[int, SessionInfo]:
    """Returns the newest session of each row of this ablation, by row number."""
    infos = [info for info in list_sessions(home) if info.settings.series == name]
    return _by_row(infos, {info.name: _started(home, info) for info in infos})


def _recording(plan: RunPlan, home: Home) -> Recording | None:
    name = recording_of(plan.model)
    return None if name is None else load_recording(find_recording(name, home.recordings))


def _instances(plan: RunPlan, home: Home, environ: Mapping[str, str], recording: Recording) -> int:
    """Returns the number of instances; with a recording, as many as it has chains for in every row."""
    tasks = resolve(msgspec.structs.replace(plan, instances=1), home=home, environ=environ).tasks
    wanted = 1 if plan.instances is None else plan.instances
    for task in tasks:
        chains = recording.chain_count(task)
        if chains < wanted * len(ROWS):
            raise UsageProblem(
                f"an ablation of {len(ROWS)} rows with --instances {wanted} needs {wanted * len(ROWS)} chains of "
                f"{short_task(task)}, and {plan.model} holds {chains}; name a --model, or a recording with as many"
            )
    return plan.instances or min(recording.chain_count(task) for task in tasks) // len(ROWS)


class _Series(NamedTuple):
    """An ablation that exists already."""

    name: str
    seed: int
    templates: dict[str, str]
    sessions: Mapping[int, SessionInfo]


def _fitting_series(checked: SessionPlan, home: Home, *, seed_asked: bool) -> tuple[_Series, ...]:
    """Returns the ablations with these settings and any prompt templates, newest first."""
    wanted = (checked.method, checked.model, checked.tasks, checked.instances, checked.iterations)
    series: dict[str, list[SessionInfo]] = {}
    for info in list_sessions(home):
        if info.settings.series.startswith(PREFIX) and wanted == (
            info.settings.method,
            info.settings.model,
            info.settings.tasks,
            info.settings.instances,
            info.settings.iterations,
        ):
            series.setdefault(info.settings.series, []).append(info)
    fitting = []
    for name in sorted(series, reverse=True):
        started = {info.name: _started(home, info) for info in series[name]}
        if all(_same(event, checked, seed_asked=seed_asked) for event in started.values()):
            first = next(iter(started.values()))
            fitting.append(_Series(name, first.seed, first.templates, _by_row(series[name], started)))
    return tuple(fitting)


def _same(started: SessionDescription, checked: SessionPlan, *, seed_asked: bool) -> bool:
    """True if the session was started with these settings; `without` is not compared."""
    names = (
        "devices",
        "targets",
        "review",
        "budget_usd",
        "budget_tokens",
        "budget_attempts",
        "budget_device_s",
        "budget_wall_s",
        "against",
        "against_source",
        "spread",
        *(("seed",) if seed_asked else ()),
    )
    return (
        all(getattr(started, name) == getattr(checked, name) for name in names)
        and msgspec.structs.replace(started.options, without=()) == checked.options
    )


def _by_row(
    infos: Sequence[SessionInfo], started: Mapping[str, SessionDescription]
) -> dict[int, SessionInfo]:
    numbers = {frozenset(row.without): row.number for row in ROWS}
    newest: dict[int, SessionInfo] = {}
    # Oldest first: a newer session of a row replaces the older one.
    for info in sorted(infos, key=lambda session: session.name):
        number = numbers.get(frozenset(started[info.name].options.without))
        if number is not None:
            newest[number] = info
    return newest


def _started(home: Home, info: SessionInfo) -> SessionDescription:
    first = next(iter(journal_of(home, info.name).events), None)
    if not isinstance(first, SessionStarted):
        raise UsageProblem(
            f"the journal of {info.name} has lost its first event; delete that session to go on"
        )
    return first.describe()


def _fresh_name(now: datetime) -> str:
    return f"{PREFIX}{now.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
