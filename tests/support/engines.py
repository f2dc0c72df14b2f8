"""Sessions run in this process by the engine's own parts, with a scripted model and a judge that does what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from engine.budget import Budget
from engine.job import session_started
from engine.judging import Judge, OnStage
from engine.methods import open_method
from engine.models import Client, Limits, Reply, Request, ScriptedClient
from engine.plan import Price, SessionPlan
from engine.retrieval import Corpus
from engine.reviewing import Decisions
from engine.scheduler import run_instances
from engine.shared import Shared
from engine.tuning import Surveying
from harness import STAGES, Device, Effort, Evaluation, Stage, StageEntered, StageLeft, Verdict, target
from harness.stages.timing.baselines import Baseline
from sessions import Home, Recorder
from sessions.events import EngineStarted, Event, Role, SessionFinished, Usage
from sessions.journal import read_journal
from suites import Task, load_task

from .evaluations import correct, failed
from .surveys import ToldSurvey

BRISK = Limits(tries=3, wait_low_s=0.0, wait_high_s=0.0)
USED = Usage(input_tokens=100, output_tokens=10, cached_tokens=0)


def candidate(verdict: str, mark: str) -> str:
    """A module of which `ToldJudge` says `verdict`: a `Verdict`, or `correct 1.5` for a measured speedup."""
    return f"# judge: {verdict}\n# {mark}\ndef vector_add(x, y):\n    return x\n"


def answer_of(verdict: str, mark: str) -> str:
    """A reply with such a candidate; `prose` for one without code."""
    if verdict == "prose":
        return f"I would rather talk about {mark}."
    return f"## Strategy\n\nIdea {mark}.\n\n```python\n{candidate(verdict, mark)}```\n"


class ToldJudge:
    """Says what a candidate's first line tells it to; `evaluated` holds every source it was asked about."""

    def __init__(self) -> None:
        self.devices: Sequence[Device] = (Device(name="cpu", kind="cpu", description="told"),)
        self.evaluated: list[str] = []
        self.examined: list[str] = []
        """Sources that it was asked about on the exam cases."""
        self.measured: list[tuple[str, str]] = []
        """Sources that it was asked about on one device, and on which."""
        self.failing = 0
        """How many of the next evaluations end with `infra_error`."""
        self.exam: Callable[[str], Evaluation] = _as_told
        """What an exam says of a source."""
        self.surveying: Surveying = ToldSurvey()

    def survey(self, task: Task) -> Surveying:
        """See `Judge`."""
        return self.surveying

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        rival: str | None,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
    ) -> Evaluation:
        """See `Judge`."""
        (self.examined if exam else self.evaluated).append(source)
        for stage in STAGES[:2]:
            on_stage(StageEntered(stage, "cpu"))
            await asyncio.sleep(0)
            on_stage(StageLeft(Stage(stage, True, 0.01), "cpu"))
        if self.failing:
            self.failing -= 1
            return failed(Verdict.INFRA_ERROR, "a worker died")
        return msgspec.structs.replace(self.exam(source), exam=True) if exam else _as_told(source)

    async def estimate(
        self,
        source: str,
        task: Task,
        *,
        start: Baseline,
        effort: Effort,
        passed: Evaluation | None,
        on_stage: OnStage,
    ) -> Evaluation:
        """See `Judge`."""
        raise NotImplementedError

    async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
        """See `Judge`."""
        self.measured.append((source, device))
        return msgspec.structs.replace(_as_told(source), device=device)


def _as_told(source: str) -> Evaluation:
    """The evaluation that a candidate's first line asks for."""
    if not source:
        return failed(Verdict.NO_CODE, "there is no code")
    verdict, _, speedup = source.splitlines()[0].removeprefix("# judge: ").partition(" ")
    if verdict == "correct":
        return correct(speedup=float(speedup) if speedup else None)
    return failed(Verdict(verdict), f"told to be {verdict}")


def told(*verdicts: str, usage: Usage = USED) -> ScriptedClient:
    """A model whose candidate in attempt n gets verdict n (the last one again after that); reflections are words."""
    return ScriptedClient(answer=answering(*verdicts, usage=usage))


def answering(*verdicts: str, usage: Usage = USED) -> Callable[[Request], Reply]:
    """What `told` answers: it depends on nothing but the call, as a recording's replies do."""

    def answer(request: Request) -> Reply:
        key = request.key
        mark = f"{key.instance}.{key.attempt}.{key.n}"
        if key.role is Role.REFLECTOR:
            return Reply(text=f"Cause {mark}.", usage=usage)
        verdict = verdicts[min(key.attempt, len(verdicts)) - 1]
        return Reply(text=answer_of(verdict, mark), reasoning=f"Thinking {mark}.", usage=usage)

    return answer


def plan(session: str = "20260101-000000-geak-0000", **changes: object) -> SessionPlan:
    """A small session on `vector_add`."""
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
        "model_calls": 16,
    }
    return SessionPlan(**(fields | changes))  # type: ignore[arg-type]


def shared(
    recorder: Recorder, of: SessionPlan, client: Client, judge: Judge, decisions: Decisions | None = None
) -> Shared:
    """What an engine's instances have in common; the budget knows what was spent before."""
    budget = Budget(usd=of.budget_usd, tokens=of.budget_tokens, prices=of.prices)
    budget.restore(recorder.state)
    return Shared(
        plan=of,
        recorder=recorder,
        clients=dict.fromkeys(Role, client),
        judge=judge,
        budget=budget,
        targets=tuple(target(name) for name in of.targets),
        corpus=Corpus(()),
        decisions=decisions or Decisions(),
        calls=asyncio.Semaphore(of.model_calls),
    )


async def run(with_: Shared) -> tuple[str, ...]:
    """Run the instances as an engine does."""
    tasks = [load_task(name) for name in with_.plan.tasks]
    return await run_instances(with_, open_method(with_.plan.method), tasks)


async def until(condition: Callable[[], object]) -> None:
    """Return once the condition holds; other tasks go on meanwhile."""
    while not condition():  # noqa: ASYNC110  # whatever is waited for here tells nobody
        await asyncio.sleep(0)


async def play(
    home: Home,
    client: Client,
    *,
    of: SessionPlan | None = None,
    judge: Judge | None = None,
    before: Callable[[Recorder, Decisions], object] | None = None,
) -> list[Event]:
    """A whole new session, left unfinished on disk; its events."""
    of = of or plan()
    decisions = Decisions()
    with Recorder.begin(home, session_started(of)) as recorder:
        recorder.record(EngineStarted(host="here", pid=1))
        if before is not None:
            before(recorder, decisions)
        await run(shared(recorder, of, client, judge or ToldJudge(), decisions))
        recorder.record(SessionFinished())
        return list(read_journal(recorder.live.journal).events)


PRICE = Price(input=1.0, output=10.0)
