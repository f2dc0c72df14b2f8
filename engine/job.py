"""What an engine needs to run a plan, looked up and opened."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from engine.errors import EngineDidNotStart, UsageProblem
from engine.launch import plan_file
from engine.methods import Method, open_method
from engine.models import Client, Limits, NoModel, open_clients
from engine.plan import MODEL_CALLS, SESSION_PLAN, SessionPlan
from engine.prompting import template_hashes
from engine.retrieval import Corpus, build_corpus
from harness import Target, target
from sessions.events import Role, SessionStarted
from sessions.home import Home, LiveFiles
from suites import SuiteError, Task, load_suite, load_task

EXAMPLES = "starter"
"""The suite whose baselines are shown as examples, besides those of the tasks' own suites."""


@dataclass(frozen=True, slots=True)
class Job:
    """A plan with all that its names stand for."""

    plan: SessionPlan
    method: Method
    tasks: Sequence[Task]
    targets: tuple[Target, ...]
    corpus: Corpus
    clients: Mapping[Role, Client]
    """Who answers each role; none for a method that asks no model."""


@asynccontextmanager
async def opened(plan: SessionPlan, *, home: Home, environ: Mapping[str, str]) -> AsyncIterator[Job]:
    """The job of a plan. What is missing is an `EngineError`, `SuiteError` or `HarnessError`."""
    method = open_method(plan.method)
    tasks = [load_task(name, registry=home.suites) for name in plan.tasks]
    targets = tuple(target(name) for name in plan.targets)
    clients: Mapping[Role, Client] = dict.fromkeys(Role, NoModel())
    if method.asks_model:
        clients = open_clients(
            plan.model,
            environ=environ,
            home_recordings=home.recordings,
            limits=plan.limits,
            roles=method.roles,
        )
    try:
        yield Job(plan, method, tasks, targets, corpus_for(tasks, home, plan.options.corpus), clients)
    finally:
        for client in {id(each): each for each in clients.values()}.values():
            await client.close()


def corpus_for(tasks: Sequence[Task], home: Home, folder: str = "") -> Corpus:
    """Examples for these tasks, those in a folder too: none of them is in it. A suite that is not in order gives none, and no error."""
    loaded: list[Task] = []
    for suite in dict.fromkeys((EXAMPLES, *(task.suite for task in tasks))):
        try:
            loaded += load_suite(suite, registry=home.suites)
        except SuiteError:
            continue
    return build_corpus(loaded, tasks, Path(folder) if folder else None)


def read_plan(live: LiveFiles) -> SessionPlan | None:
    """The plan in a live folder; `None` where there is none. `EngineDidNotStart` when it cannot be read."""
    file = plan_file(live)
    try:
        return SESSION_PLAN.decode(file.read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise EngineDidNotStart(
            f"{file} cannot be read ({error}); take it away to resume without its price and limits"
        ) from error


def plan_of(started: SessionStarted | None) -> SessionPlan:
    """The plan of a session that is known by its first event alone, as one fetched from another store.

    `UsageProblem` when it had a budget in USD: the price that it was kept by is not in the event.
    """
    if started is None:
        raise UsageProblem("the session has no first event, so there is nothing to go on with")
    if started.budget_usd is not None:
        raise UsageProblem(
            f"{started.session} has a budget in USD, and its price is not here; resume it where it ran"
        )
    return SessionPlan(
        session=started.session,
        method=started.method,
        model=started.model,
        tasks=started.tasks,
        instances=started.instances,
        iterations=started.iterations,
        seed=started.seed,
        devices=started.devices,
        targets=started.targets,
        review=started.review,
        budget_usd=None,
        budget_tokens=started.budget_tokens,
        prices={},
        limits=Limits(),
        model_calls=MODEL_CALLS,
        first_chain=started.first_chain,
        options=started.options,
        series=started.series,
        against=started.against,
        against_source=started.against_source,
        spread=started.spread,
    )


def session_started(plan: SessionPlan) -> SessionStarted:
    """A new session's first event."""
    return SessionStarted(
        session=plan.session,
        method=plan.method,
        model=plan.model,
        tasks=plan.tasks,
        instances=plan.instances,
        iterations=plan.iterations,
        seed=plan.seed,
        devices=plan.devices,
        targets=plan.targets,
        review=plan.review,
        budget_usd=plan.budget_usd,
        budget_tokens=plan.budget_tokens,
        first_chain=plan.first_chain,
        series=plan.series,
        options=plan.options,
        against=plan.against,
        against_source=plan.against_source,
        spread=plan.spread,
        versions=versions(),
        templates=template_hashes(),
    )


def versions() -> dict[str, str]:
    """What runs: Python, Wavedeck, and the packages that decide verdicts and replies."""
    found = {"python": platform.python_version()}
    for package in ("wavedeck", "torch", "triton", "anthropic", "openai"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
