"""Protects the judge's verdicts on the corpus: cheats are refused, honest kernels are correct, known limits are unchanged.

`make test` judges a fifth of the cheats, drawn anew for each commit, and honest kernels in `tests/honest`. `make soak`
judges all entries, `pytest -m gpu` on a GPU.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, Outcome, Verdict, evaluate, target
from harness.stages.modes import Attempt, Exam
from tests.conftest import SOAK
from tests.support.draws import drawn
from tests.support.judge.gpu import gpu_pool, missing, needs_gpu, small

from .corpus import CASES, KNOWN_LIMITS, Entry, kernel_of, narrow, read_corpus

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.judge, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="session")]
Judging = tuple[Entry, str]
"""An entry and the level that judges it."""
Evaluations = dict[str, Evaluation]


CORPUS = read_corpus()
LIMITS = [entry for entry in CORPUS if entry.family == KNOWN_LIMITS]
REFUSED = [entry for entry in CORPUS if entry.family != KNOWN_LIMITS]
CPU = [entry for entry in REFUSED if entry.device != "gpu"]
GPU = [entry for entry in REFUSED if entry.device != "cpu" and entry.level == "default"]
CHEATS = [entry for entry in CPU if not entry.is_honest]
JUDGINGS = [(entry, entry.level) for entry in (CPU if SOAK else drawn(CHEATS, len(CHEATS) // 5))]
LIMIT_JUDGINGS = [(entry, level) for entry in LIMITS for level in ("default", "exam")]


def id_of(judging: Judging) -> str:
    return f"{judging[0].name}-{judging[1]}"


async def judge_all(pool: DevicePool, judgings: list[Judging]) -> Evaluations:
    async with asyncio.TaskGroup() as group:
        tasks = {id_of(judging): group.create_task(judge(pool, *judging)) for judging in judgings}
    return {name: task.result() for name, task in tasks.items()}


async def judge(pool: DevicePool, entry: Entry, level: str) -> Evaluation:
    gpu_target = pool.devices[0].target
    task = narrow(entry, level)
    if entry.is_honest or (gpu_target and entry.device != "gpu"):
        task = small(task)
    return await evaluate(
        kernel_of(entry),
        task,
        pool,
        Exam() if level == "exam" else Attempt(),
        targets=[target(gpu_target or entry.target)],
        seed=1,
    )


def selected(request: pytest.FixtureRequest, tests: set[str]) -> list[Judging]:
    """Parameters of the selected tests, so that only their entries are judged."""
    return [
        item.callspec.params["judging"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname in tests
    ]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def evaluations(pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    return await judge_all(
        pool, selected(request, {"test_verdict_is_expected", "test_known_limit_is_unchanged"})
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gpu_evaluations(gpu_pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    return await judge_all(gpu_pool, selected(request, {"test_gpu_verdict_is_expected"}))


def assert_expected(entry: Entry, evaluation: Evaluation) -> None:
    findings = {finding.kind for finding in getattr(evaluation, "findings", ())}
    kinds = {evaluation.error.kind} if evaluation.error is not None else findings or {""}
    if evaluation.latency and all(latency.outcome is not Outcome.FASTER for latency in evaluation.latency):
        kinds.add("no_gain")
    assert str(evaluation.verdict) in entry.expected("verdict"), evaluation.error
    assert kinds & set(entry.expected("error")), evaluation.error


@pytest.mark.parametrize("judging", JUDGINGS, ids=id_of)
async def test_verdict_is_expected(evaluations: Evaluations, judging: Judging) -> None:
    assert_expected(judging[0], evaluations[id_of(judging)])


@pytest.mark.parametrize("judging", LIMIT_JUDGINGS if SOAK else LIMIT_JUDGINGS[:1], ids=id_of)
async def test_known_limit_is_unchanged(evaluations: Evaluations, judging: Judging) -> None:
    entry, level = judging
    evaluation = evaluations[id_of(judging)]
    assert str(evaluation.verdict) in entry.expected(level), evaluation.error


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    "judging", [(entry, entry.level) for entry in GPU] if not missing() else [], ids=id_of
)
async def test_gpu_verdict_is_expected(gpu_evaluations: Evaluations, judging: Judging) -> None:
    """A trick that cannot run on a GPU (numpy on GPU memory) may fail in a different way than on a CPU."""
    entry, evaluation = judging[0], gpu_evaluations[id_of(judging)]
    if entry.is_honest or entry.device == "gpu":
        assert_expected(entry, evaluation)
    else:
        assert evaluation.verdict is not Verdict.CORRECT
        assert evaluation.verdict.counted or str(evaluation.verdict) in entry.expected("verdict"), (
            evaluation.error
        )


async def test_corpus_entries_are_valid_and_complete() -> None:
    for entry in CORPUS:
        ast.parse(kernel_of(entry))
        narrow(entry, entry.level)
    honest = [entry for entry in REFUSED if entry.is_honest]
    cheats = [entry for entry in REFUSED if not entry.is_honest]
    assert len(cheats) >= 250
    assert len(honest) >= 24
    assert len(LIMITS) <= 43
    assert {entry.task for entry in honest} == {entry.task for entry in cheats} == set(CASES)
