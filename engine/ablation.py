"""An ablation: the same run of `geak` once a row, with other modules switched off in each, one session a row.

The sessions of one ablation name it as their `series`, which is how an interrupted one is found again and gone on with.
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
from engine.plan import RunPlan, SessionPlan, resolve
from engine.prompting import template_hashes
from sessions.catalog import SessionInfo, journal_of, list_sessions
from sessions.events import SessionStarted
from sessions.home import Home
from sessions.names import short_task
from sessions.recording import Recording, load_recording

METHOD = "geak"
PREFIX = "ablation-"


class AblationRow(NamedTuple):
    """One row: which modules are off."""

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
"""Rows 1 to 4 add module to module, as GEAK's paper does (reflection is on in all of these); rows 3 and 5 to 7 leave one out of
row 4. Row 3 is both."""


class Contribution(NamedTuple):
    """What a module adds, as the difference of two rows."""

    module: str
    to: str
    """To which modules it is added, in words."""
    on: int
    """The row with it."""
    off: int
    """The row without it."""


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
    """What all rows have in common, and the sessions that are there already."""

    name: str
    plan: RunPlan
    """Of every row, but for the modules that are off and the chains of a recording."""
    checked: SessionPlan
    """The same with every default filled in."""
    sessions: Mapping[int, SessionInfo]
    """By number of the row, the newest."""
    outdated: str = ""
    """An ablation with the same settings that was made with other prompts, where there is none with these."""

    def row_plan(self, row: AblationRow) -> RunPlan:
        """What the session of a row is asked to do. Of a recording, row r plays the r-th stretch of as many chains as instances."""
        return msgspec.structs.replace(
            self.plan,
            options=msgspec.structs.replace(self.plan.options, without=row.without),
            first_chain=(row.number - 1) * self.checked.instances + 1,
            series=self.name,
        )


def settle(
    asked: RunPlan, *, home: Home, environ: Mapping[str, str], anew: bool = False, now: datetime | None = None
) -> Ablation:
    """The ablation that is asked for: the newest one with the same settings, or with `anew`, or where there is none, a new one.

    The same are tasks, model, instances, iterations, seed (where one is asked for), devices, targets, budgets, timing baseline, options and
    prompt templates. `UsageProblem` says what cannot be, as when a recording holds too few chains.
    """
    plan = msgspec.structs.replace(
        asked, method=METHOD, review="auto", options=msgspec.structs.replace(asked.options, without=())
    )
    recording = _recording(plan, home)
    if recording is not None:
        plan = msgspec.structs.replace(plan, instances=_instances(plan, home, environ, recording))
    checked = resolve(plan, home=home, environ=environ)
    fitting = () if anew else _fitting_series(checked, home, seed_asked=asked.seed is not None)
    found = next((each for each in fitting if each.templates == template_hashes()), None)
    outdated = fitting[0].name if fitting and found is None else ""
    if found is None:
        found = _Found(_fresh_name(now or datetime.now(UTC)), checked.seed, {}, {})
    settled = msgspec.structs.replace(
        plan,
        tasks=checked.tasks,
        suite=None,
        instances=checked.instances,
        iterations=checked.iterations,
        devices=checked.devices,
        targets=checked.targets,
        seed=found.seed,
    )
    return Ablation(
        found.name, settled, msgspec.structs.replace(checked, seed=found.seed), found.sessions, outdated
    )


def row_sessions(home: Home, name: str) -> dict[int, SessionInfo]:
    """By number of the row, the newest session of this ablation."""
    infos = [each for each in list_sessions(home) if each.series == name]
    return _by_row(infos, {each.name: _started(home, each) for each in infos})


def _recording(plan: RunPlan, home: Home) -> Recording | None:
    name = recording_of(plan.model)
    return None if name is None else load_recording(find_recording(name, home.recordings))


def _instances(plan: RunPlan, home: Home, environ: Mapping[str, str], recording: Recording) -> int:
    """As many as the recording has chains for, in every row; `UsageProblem` when that is fewer than asked for, or none."""
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


class _Found(NamedTuple):
    """An ablation that is there."""

    name: str
    seed: int
    templates: dict[str, str]
    sessions: Mapping[int, SessionInfo]


def _fitting_series(checked: SessionPlan, home: Home, *, seed_asked: bool) -> tuple[_Found, ...]:
    """The ablations with these settings, newest first, whatever their prompts."""
    wanted = (checked.method, checked.model, checked.tasks, checked.instances, checked.iterations)
    series: dict[str, list[SessionInfo]] = {}
    for each in list_sessions(home):
        if each.series.startswith(PREFIX) and wanted == (
            each.method,
            each.model,
            each.tasks,
            each.instances,
            each.iterations,
        ):
            series.setdefault(each.series, []).append(each)
    found = []
    for name in sorted(series, reverse=True):
        started = {each.name: _started(home, each) for each in series[name]}
        if all(_same(each, checked, seed_asked=seed_asked) for each in started.values()):
            first = next(iter(started.values()))
            found.append(_Found(name, first.seed, first.templates, _by_row(series[name], started)))
    return tuple(found)


def _same(started: SessionStarted, checked: SessionPlan, *, seed_asked: bool) -> bool:
    """Whether a session was started with these settings, but for the modules that are off."""
    names = (
        "devices",
        "targets",
        "review",
        "budget_usd",
        "budget_tokens",
        "against",
        "against_source",
        "spread",
        *(("seed",) if seed_asked else ()),
    )
    return (
        all(getattr(started, name) == getattr(checked, name) for name in names)
        and msgspec.structs.replace(started.options, without=()) == checked.options
    )


def _by_row(infos: Sequence[SessionInfo], started: Mapping[str, SessionStarted]) -> dict[int, SessionInfo]:
    numbers = {frozenset(row.without): row.number for row in ROWS}
    found: dict[int, SessionInfo] = {}
    # Oldest first, so that the newest of a row stays.
    for each in sorted(infos, key=lambda info: info.name):
        number = numbers.get(frozenset(started[each.name].options.without))
        if number is not None:
            found[number] = each
    return found


def _started(home: Home, info: SessionInfo) -> SessionStarted:
    first = next(iter(journal_of(home, info.name).events), None)
    if not isinstance(first, SessionStarted):
        raise UsageProblem(
            f"the journal of {info.name} has lost its first event; delete that session to go on"
        )
    return first


def _fresh_name(now: datetime) -> str:
    return f"{PREFIX}{now.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
