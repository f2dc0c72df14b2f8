"""An invented study for tests of reports: methods, models and seeds over tasks, with each kind of attempt that a table counts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from statistics import fmean, geometric_mean

from harness import ErrorReport, Evaluation, Latency, Verdict
from harness.wire.results.provenance import Provenance
from sessions import events as ev
from sessions.names import short_task
from sessions.settings import MethodOptions
from tests.support.judge.evaluations import judged
from tests.support.sessions import story

TASKS = (
    "starter/cross_entropy",
    "starter/flip",
    "starter/layer_norm",
    "starter/matmul",
    "starter/softmax",
    "starter/vector_add",
)
FAST, SLOW = (Provenance(product=name, driver="6.4", torch="2.8.0") for name in ("MI300X", "MI250"))
VERDICTS = (
    *(Verdict.CORRECT,) * 8,
    *(Verdict.WRONG,) * 4,
    *(Verdict.CALL_ERROR, Verdict.COMPILE_ERROR, Verdict.REJECTED, Verdict.INFRA_ERROR, Verdict.UNSUPPORTED),
)
PASSED = {Verdict.CORRECT: 6, Verdict.WRONG: 3, Verdict.COMPILE_ERROR: 2, Verdict.CALL_ERROR: 1}
CASES = ("small", "large", "ragged")


def study(
    tasks: Sequence[str] = TASKS,
    methods: Sequence[str] = ("geak", "direct"),
    models: Sequence[str] = ("m1", "m2", "m3"),
    seeds: Sequence[int] = (1, 2),
    instances: int = 2,
    iterations: int = 4,
) -> Iterator[list[ev.Event]]:
    """Yield the numbered events of each session. Prompts of `m3` show references; `direct` with seed 2 ran on slower hardware."""
    for number, (method, model, seed) in enumerate(itertools.product(methods, models, seeds)):
        draw = random.Random(number)
        started = story.started(
            f"20260101-{number:06d}-{method}-0000",
            method=method,
            model=model,
            seed=seed,
            tasks=tuple(tasks),
            instances=instances,
            iterations=iterations,
            series=f"invented-3f2a91/{number}",
            options=MethodOptions(
                without=("one-shot",) if method == "geak" and model == "m2" else (),
                show_reference=model == "m3",
            ),
        )
        slow = method == "direct" and seed == 2
        chains = itertools.product(tasks, range(1, instances + 1))
        events = [
            started,
            *itertools.chain.from_iterable(_chain(draw, *chain, iterations, slow=slow) for chain in chains),
        ]
        yield story.numbered(events)


def _chain(
    draw: random.Random, task: str, instance: int, iterations: int, *, slow: bool
) -> Iterator[ev.Event]:
    yield ev.InstanceStarted(task=task, instance=instance)
    fastest: tuple[float, str] = (0.0, "")
    for number in range(1, iterations + 1):
        attempt = f"{short_task(task)}#{instance}/{number}"
        human = draw.random() < 0.03
        yield ev.AttemptStarted(attempt=attempt, origin=ev.Origin.HUMAN if human else ev.Origin.FRESH)
        if not human:
            yield from story.call(attempt, ev.Role.GENERATOR, "words", cost_usd=draw.randrange(1, 9) / 64)
        yield ev.CandidateProposed(attempt=attempt, source=f"{story.KERNEL}# {attempt}\n")
        hard = draw.random() < 0.9 - TASKS.index(task) / 6 if task in TASKS else False
        evaluation = _evaluation(draw, task, draw.choice(VERDICTS[8 if hard else 0 :]), slow=slow)
        if evaluation.speedup and evaluation.speedup > fastest[0]:
            fastest = evaluation.speedup, attempt
        yield ev.AttemptJudged(attempt=attempt, evaluation=evaluation, device_s=draw.randrange(1, 64) / 8)
    if fastest[1]:
        verdict = Verdict.WRONG if draw.random() < 0.15 else Verdict.CORRECT
        exam = _evaluation(draw, task, verdict, slow=slow, exam=True)
        yield ev.WinnerExamined(attempt=fastest[1], evaluation=exam)
        if draw.random() < 0.1:
            yield ev.DecisionMade(attempt=fastest[1], accepted=False, why="no", by="me")
    yield ev.InstanceFinished(task=task, instance=instance, reason="iterations", best=fastest[1] or None)


def _evaluation(
    draw: random.Random, task: str, verdict: Verdict, *, slow: bool, exam: bool = False
) -> Evaluation:
    correct = verdict is Verdict.CORRECT
    ratios = [draw.lognormvariate(0.2, 0.5) for _ in CASES] if correct else []
    latency = tuple(
        Latency("0", case, ratio, 1.0, ratio, (0.97 * ratio, 1.03 * ratio), "tape", against="triton")
        for case, ratio in zip(CASES, ratios, strict=False)
    )
    kind = "no_launch" if verdict is Verdict.REJECTED else "mismatch"
    return judged(
        verdict,
        PASSED.get(verdict, 0),
        task=task,
        device="0",
        error=None if correct else ErrorReport(kind, "output 0 is wrong", trace="", line=5),
        speedup=fmean(ratios) if correct else None,
        speedup_geomean=geometric_mean(ratios) if correct else None,
        latency=latency,
        provenance=SLOW if slow else FAST,
        weak_oracle="accepts zeros" if task.endswith("vector_add") and not correct else "",
        exam=exam,
    )
