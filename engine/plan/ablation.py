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
from sessions.settings import RunSettings

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
    name = recording_of(plan.model)
    if name is not None:
        recording = load_recording(find_recording(name, home.recordings))
        plan = msgspec.structs.replace(plan, instances=_instances(plan, home, environ, recording))
    checked = resolve(plan, home=home, environ=environ)
    fitting = {} if anew else _fitting_series(checked, home, seed_asked=request.seed is not None)
    same_prompts = [
        name for name, infos in fitting.items() if _templates(home, infos[0]) == template_hashes()
    ]
    outdated = next(iter(fitting), "") if not same_prompts else ""
    sessions = fitting[same_prompts[0]] if same_prompts else []
    checked = msgspec.structs.replace(checked, seed=sessions[0].settings.seed if sessions else checked.seed)
    settled = msgspec.structs.replace(
        plan,
        tasks=checked.tasks,
        suite=None,
        instances=checked.instances,
        iterations=checked.iterations,
        devices=checked.devices,
        targets=checked.targets,
        seed=checked.seed,
    )
    series = same_prompts[0] if same_prompts else _fresh_name(now or datetime.now(UTC))
    return Ablation(series, settled, checked, _by_row(sessions), outdated)


def row_sessions(home: Home, name: str) -> dict[int, SessionInfo]:
    """Returns the newest session of each row of this ablation, by row number."""
    return _by_row([info for info in list_sessions(home) if info.settings.series == name])


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


def _fitting_series(checked: SessionPlan, home: Home, *, seed_asked: bool) -> dict[str, list[SessionInfo]]:
    """Returns the sessions of each ablation with these settings and any prompt templates, newest ablation first."""
    series: dict[str, list[SessionInfo]] = {}
    for info in list_sessions(home):
        if info.settings.series.startswith(PREFIX):
            series.setdefault(info.settings.series, []).append(info)
    wanted = _common_settings(checked, seed_asked=seed_asked)
    return {
        name: series[name]
        for name in sorted(series, reverse=True)
        if all(_common_settings(info.settings, seed_asked=seed_asked) == wanted for info in series[name])
    }


def _common_settings(settings: RunSettings, *, seed_asked: bool) -> dict[str, object]:
    """Returns the settings that all rows of an ablation share."""
    own = {"first_chain", "series", "title", *(() if seed_asked else ("seed",))}
    options = msgspec.structs.replace(settings.options, without=())
    shared = {name: value for name, value in settings.settings().items() if name not in own}
    return shared | {"options": options}


def _templates(home: Home, info: SessionInfo) -> dict[str, str]:
    """Returns the hashes of the prompt templates of a session; empty if its first event is lost."""
    first = next(iter(journal_of(home, info.name).events), None)
    return first.templates if isinstance(first, SessionStarted) else {}


def _by_row(infos: Sequence[SessionInfo]) -> dict[int, SessionInfo]:
    numbers = {frozenset(row.without): row.number for row in ROWS}
    newest: dict[int, SessionInfo] = {}
    # Oldest first: a newer session of a row replaces the older one.
    for info in sorted(infos, key=lambda session: session.name):
        number = numbers.get(frozenset(info.settings.options.without))
        if number is not None:
            newest[number] = info
    return newest


def _fresh_name(now: datetime) -> str:
    return f"{PREFIX}{now.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
