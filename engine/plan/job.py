"""Prepares a run: looks up the method, tasks, targets, examples and models of a plan, and reads plans back."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import msgspec

from engine.corpus.retrieval import Corpus, build_corpus
from engine.errors import EngineDidNotStart, UsageProblem
from engine.methods import Method, open_method
from engine.models import Client, Limits, NoModel, open_clients
from engine.models.reaching import check_answers, check_reachable
from engine.plan.plan import SESSION_PLAN, SessionPlan
from engine.prompting.baseline_facts import KERNEL_MARK
from engine.prompting.prompting import template_hashes
from harness import Target, target
from harness.linux.installed import installed_version
from harness.processes.starting.judge_python import OUR_PYTHON, JudgePython
from sessions.events import Role, SessionStarted
from sessions.home import Home, SessionFiles
from sessions.settings import RunSettings, SessionDescription
from suites import SuiteError, Task, find_public_task, load_public_suite, load_suite, load_task
from suites.public.task import PublicTask
from suites.registry import OWN

log = logging.getLogger(__name__)

EXAMPLES = "starter"
"""The suite that gives examples to every task, besides the tasks' own suites."""


@dataclass(frozen=True, slots=True)
class Job:
    """A plan and the objects that its names refer to."""

    plan: SessionPlan
    method: Method
    tasks: Sequence[Task]
    targets: tuple[Target, ...]
    unrecorded: Sequence[PublicTask]
    """Tasks of benchmarks: the engine records their tests first."""
    corpus: Corpus
    clients: Mapping[Role, Client]
    """The model of each role; `NoModel` for a method that asks no model."""


@asynccontextmanager
async def open_job(
    plan: SessionPlan, *, home: Home, environ: Mapping[str, str], has_open_instances: bool = True
) -> AsyncIterator[Job]:
    """Open the job of a plan. Raises `EngineError`, `SuiteError` or `HarnessError` if a part is missing.

    Without open instances nothing asks a model at once, so its server is not asked first: a profile needs none.
    """
    method = open_method(plan.method)
    tasks = [load_task(name, registry=home.suites) for name in plan.tasks if name not in plan.to_record]
    read_suite = cache(partial(load_public_suite, registry=home.suites))
    unrecorded = [find_public_task(name, read_suite(name.partition("/")[0]).tasks) for name in plan.to_record]
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
        # Before anything is judged: else a server that refuses every call is found after minutes of baselines.
        if method.asks_model and has_open_instances:
            await asyncio.to_thread(check_reachable, plan.model, environ, method.roles)
            await check_answers(clients.values())
        corpus = await asyncio.to_thread(corpus_for, tasks, home, plan.options.corpus, unrecorded)
        async with AsyncExitStack() as stack:
            if plan.options.corpus:
                # Starts now, not with the first search, because a search runs in the event loop.
                stack.push_async_callback(
                    asyncio.wait, [asyncio.create_task(prepare(corpus), name="examples")]
                )
            yield Job(plan, method, tasks, targets, unrecorded, corpus, clients)
    finally:
        for client in {id(client): client for client in clients.values()}.values():
            await client.close()


async def prepare(corpus: Corpus) -> None:
    """Build the indices of the examples in a thread; an error is logged, and the first search raises it again."""
    try:
        await asyncio.to_thread(corpus.prepare)
    except Exception:
        log.exception("the indices of the examples cannot be built")


def corpus_for(
    tasks: Sequence[Task], home: Home, further: str = "", unrecorded: Sequence[PublicTask] = ()
) -> Corpus:
    """Returns the examples for these tasks, also from the folder or file `further`; the tasks themselves are left out.

    A suite that cannot be loaded gives no examples and no error. Nor does the suite `OWN`: a person agreed to show one file.
    """
    loaded: list[Task] = []
    for suite in dict.fromkeys((EXAMPLES, *(task.suite for task in tasks if task.suite != OWN))):
        try:
            loaded += load_suite(suite, registry=home.suites)
        except SuiteError:
            continue
    return build_corpus(loaded, tasks, Path(further) if further else None, unrecorded=unrecorded)


def read_plan(live: SessionFiles) -> SessionPlan | None:
    """Returns the plan in a session's folder; `None` if there is none. `EngineDidNotStart` if it cannot be read."""
    try:
        return SESSION_PLAN.decode(live.plan.read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise EngineDidNotStart(
            f"{live.plan} cannot be read ({error}); remove it to resume without its prices and limits"
        ) from error


def plan_of(started: SessionDescription | None) -> SessionPlan:
    """Returns the plan of a session of which only the first event exists, for example a fetched session.

    Raises `UsageProblem` if the session had a budget in USD: the event does not carry the prices.
    """
    if started is None:
        raise UsageProblem("the session has no first event, so it cannot be resumed")
    if started.budget_usd is not None:
        raise UsageProblem(
            f"{started.session} has a budget in USD and its prices are not on this machine; resume it where it ran"
        )
    if started.options.predictions or started.options.rejudges:
        raise UsageProblem(
            f"the candidates of {started.session} are not on this machine; resume it where it ran"
        )
    return SessionPlan(session=started.session, limits=Limits(), **started.settings())


def references_shown(job: Job) -> tuple[str, ...]:
    """Returns the tasks with prompts that quote the Triton reference that their benchmark asks for.

    A benchmark without a text for a task gets an instruction that quotes the reference; `--show-reference` quotes it too.
    Candidates that exist already had their prompts elsewhere: the plan names those tasks.
    """
    if job.plan.candidates:
        return job.plan.references_shown
    recorded = [
        (task.id, task.script.hides_baseline, task.instruction)
        for task in job.tasks
        if task.script is not None
    ]
    unrecorded = [(task.id, task.asks_for_reference, task.instruction) for task in job.unrecorded]
    shows = job.plan.options.show_reference
    return tuple(
        name
        for name, is_hidden, instruction in (*recorded, *unrecorded)
        if (shows if is_hidden else KERNEL_MARK in instruction)
    )


def session_started(plan: SessionPlan, python: JudgePython = OUR_PYTHON) -> SessionStarted:
    """Returns the first event of a new session. `python` runs its judge."""
    return SessionStarted(
        session=plan.session,
        settings=RunSettings(**plan.settings()),
        versions=versions() | python.versions,
        templates=template_hashes(),
    )


def versions() -> dict[str, str]:
    """Returns the versions of Python, Wavedeck, and the packages that affect verdicts and replies."""
    packages = ("wavedeck", "torch", "triton", "anthropic", "openai")
    numbers = {package: number for package in packages if (number := installed_version(package))}
    return {"python": platform.python_version(), **numbers}
