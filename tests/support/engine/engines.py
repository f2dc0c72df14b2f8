"""Runs sessions in this process: real engine parts, a scripted model and a scripted judge.

The judge reads the verdict from the first line of a candidate (see `candidate`).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from engine.corpus.retrieval import Corpus
from engine.judge.judging import Judge, OnStage
from engine.methods import open_method
from engine.models import Client, Gates, Limits, Reply, Request, ScriptedClient
from engine.plan.budget import budget_of
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from engine.run.person import Changes
from engine.run.scheduler import run_instances
from engine.run.shared import Shared
from harness import STAGES, Device, Evaluation, Stage, StageEvent, Verdict, target
from harness.stages.modes import Rough
from harness.stages.survey import Surveying
from harness.stages.timing.baselines import Baseline, timing_baseline
from harness.wire.results.kernel_counts import Profile
from sessions import Home, Recorder, resume
from sessions.events import EngineStarted, Event, InstanceFinished, Role, SessionFinished, Usage
from sessions.journal.journal import read_journal
from suites import Task, load_task
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.profiles import softmax_profile

from .surveys import ScriptedSurvey

BRISK = Limits(tries=3, wait_low_s=0.0, wait_high_s=0.0)
WAIT_S = 120.0
USED = Usage(input_tokens=100, output_tokens=10, cached_tokens=0)


def candidate(verdict: str, mark: str) -> str:
    """Return a module that gets `verdict` from `ScriptedJudge`: a `Verdict`, or `correct 1.5` with a speedup."""
    return f"# judge: {verdict}\n# {mark}\ndef vector_add(x, y):\n    return x\n"


def answer_of(verdict: str, mark: str) -> str:
    """Return a reply with a candidate for `verdict`; `prose` and `endless` give a reply without code."""
    if verdict in ("prose", "endless"):
        return f"I would rather talk about {mark}."
    return f"## Strategy\n\nIdea {mark}.\n\n```python\n{candidate(verdict, mark)}```\n"


class ScriptedJudge:
    """Judge whose verdict comes from the first line of a candidate; `evaluated` holds all judged sources."""

    language = None

    def __init__(self) -> None:
        self.devices: Sequence[Device] = (Device(name="cpu", kind="cpu", description="scripted"),)
        self.evaluated: list[str] = []
        self.examined: list[str] = []
        """Sources that were judged on the exam cases."""
        self.measured: list[tuple[str, str]] = []
        """Source and device of each call of `measure`."""
        self.profiled: list[tuple[str, str, str]] = []
        """Source, case and device of each call of `profile`."""
        self.failing = 0
        """Number of next evaluations that end with `infra_error`."""
        self.exam: Callable[[str], Evaluation] = _scripted_evaluation
        """Returns the exam's evaluation of a source."""
        self.surveying: Surveying = ScriptedSurvey()

    def baseline(self, task: Task) -> Baseline:
        """See `Judge`."""
        return timing_baseline(task)

    def survey(self, task: Task) -> Surveying:
        """See `Judge`."""
        return self.surveying

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
        name: str = "",
    ) -> Evaluation:
        """See `Judge`."""
        (self.examined if exam else self.evaluated).append(source)
        for stage in STAGES[:2]:
            on_stage(StageEvent(stage, "cpu"))
            await asyncio.sleep(0)
            on_stage(StageEvent(stage, "cpu", Stage(stage, True, 0.01)))
        if self.failing:
            self.failing -= 1
            return failed(Verdict.INFRA_ERROR, "a worker died")
        return msgspec.structs.replace(self.exam(source), exam=True) if exam else _scripted_evaluation(source)

    async def estimate(
        self, source: str, task: Task, rough: Rough, *, start: Baseline, on_stage: OnStage
    ) -> Evaluation:
        """See `Judge`."""
        raise NotImplementedError

    async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
        """See `Judge`."""
        self.measured.append((source, device))
        return msgspec.structs.replace(_scripted_evaluation(source), device=device)

    async def profile(
        self,
        source: str,
        task: Task,
        *,
        case: str,
        device: str,
        configs: Mapping[str, str],
        on_stage: OnStage,
    ) -> Profile:
        """See `Judge`."""
        self.profiled.append((source, case, device))
        return softmax_profile(case=case, device=device)


def _scripted_evaluation(source: str) -> Evaluation:
    if not source:
        return failed(Verdict.NO_CODE, "there is no code")
    if not source.startswith("# judge: "):
        return correct(speedup=1.0)  # a task's own baseline
    verdict, _, speedup = source.splitlines()[0].removeprefix("# judge: ").partition(" ")
    if verdict == "correct":
        return correct(speedup=float(speedup) if speedup else None)
    return failed(Verdict(verdict), f"scripted verdict: {verdict}")


def scripted_model(*verdicts: str, usage: Usage = USED) -> ScriptedClient:
    """Model whose candidate in attempt n gets verdict n; the last verdict repeats. Reflections are plain text."""
    return ScriptedClient(answer=scripted_answer(*verdicts, usage=usage))


def scripted_answer(*verdicts: str, usage: Usage = USED) -> Callable[[Request], Reply]:
    """Answer function of `scripted_model`: a reply depends only on the call, as in a recording."""

    def answer(request: Request) -> Reply:
        key = request.key
        mark = f"{key.instance}.{key.attempt}.{key.n}"
        if key.role is Role.REFLECTOR:
            return Reply(text=f"Cause {mark}.", usage=usage)
        verdict = verdicts[min(key.attempt, len(verdicts)) - 1]
        return Reply(text=answer_of(verdict, mark), reasoning=f"Thinking {mark}.", usage=usage)

    return answer


def plan(session: str = "20260101-000000-geak-0000", **changes: object) -> SessionPlan:
    """Return the plan of a small session on `vector_add`."""
    fields: dict[str, object] = {
        "session": session,
        "method": "geak",
        "model": "scripted:test",
        "tasks": ("starter/vector_add",),
        "instances": 1,
        "iterations": 3,
        "seed": 1,
        "devices": ("cpu",),
        "targets": ("gfx942",),
        "review": "auto",
        "budget_usd": None,
        "budget_tokens": None,
        "prices": {},
        "limits": BRISK,
    }
    return SessionPlan(**(fields | changes))  # type: ignore[arg-type]


def shared(
    recorder: Recorder,
    session_plan: SessionPlan,
    client: Client,
    judge: Judge,
) -> Shared:
    """Build the state that all instances of an engine share; earlier spending counts in the budget."""
    budget = budget_of(session_plan)
    budget.restore(recorder.state)
    return Shared(
        plan=session_plan,
        recorder=recorder,
        clients=dict.fromkeys(Role, client),
        judge=judge,
        budget=budget,
        targets=tuple(target(name) for name in session_plan.targets),
        corpus=Corpus(()),
        gates=Gates(session_plan.providers),
    )


async def run(shared_state: Shared) -> tuple[str, ...]:
    """Run the instances of the plan as an engine does."""
    tasks = [load_task(name) for name in shared_state.plan.tasks]
    return await run_instances(shared_state, open_method(shared_state.plan.method), tasks)


async def until(condition: Callable[[], object]) -> None:
    """Return as soon as the condition holds; fail after `WAIT_S`. Other tasks continue during the wait."""
    limit = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < limit, f"waited {WAIT_S:.0f} s for: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(0)


async def play(
    home: Home,
    client: Client,
    *,
    session_plan: SessionPlan | None = None,
    judge: Judge | None = None,
    before: Callable[[Recorder, Changes], object] | None = None,
) -> list[Event]:
    """Run a new session and return its events; the session's files stay in `home`."""
    session_plan = session_plan or plan()
    changes = Changes()
    with Recorder.begin(home, session_started(session_plan)) as recorder:
        recorder.record(EngineStarted(host="here", pid=1))
        if before is not None:
            before(recorder, changes)
        work = shared(recorder, session_plan, client, judge or ScriptedJudge())
        work.changes = changes
        await run(work)
        recorder.record(SessionFinished())
        return list(read_journal(recorder.files.journal).events)


def endings(events: list[Event]) -> list[str]:
    """Return the reason of each instance's end."""
    return [event.reason for event in events if isinstance(event, InstanceFinished)]


def cut(whole: Home, home: Home, session: str, lines: int, *, torn: bytes = b"") -> list[Event]:
    """Write the first lines of a session's journal into a new home, as a crash leaves it; returns their events."""
    live = home.files(session)
    live.folder.mkdir(parents=True)
    kept = whole.files(session).journal.read_bytes().splitlines(keepends=True)[:lines]
    live.journal.write_bytes(b"".join(kept) + torn)
    return list(read_journal(live.journal).events)


async def resume_to_end(
    home: Home, session_plan: SessionPlan, client: Client, judge: Judge | None = None, *, store: bool = False
) -> list[Event]:
    """Resume a session, run it to its end and return its events; with `store` it is put away."""
    with resume(home, session_plan.session) as recorder:
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, session_plan, client, judge or ScriptedJudge()))
        recorder.record(SessionFinished())
        events = list(read_journal(recorder.files.journal).events)
        if store:
            await recorder.finish()
    return events
