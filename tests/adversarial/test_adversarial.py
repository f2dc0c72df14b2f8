"""Every cheat of the corpus is refused, every honest kernel is correct, and the known limits are what they are said to be.

`make test` judges one cheat a family and one honest kernel a task, `make soak` all of them, `pytest -m gpu` all on a GPU.
"""

from __future__ import annotations

import ast
import asyncio

import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, Outcome, Verdict, evaluate, target
from tests.conftest import SOAK
from tests.support.gpu import gpu_pool, missing, needs_gpu, small

from .corpus import CASES, KNOWN_LIMITS, Entry, kernel_of, narrow, read_corpus

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.judge, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="session")]
Question = tuple[Entry, str]
"""An entry and the level that judges it."""
Evaluations = dict[str, Evaluation]


def sample(entries: list[Entry]) -> list[Entry]:
    """One entry a family, of honest kernels one a task; a cheat that the static check refuses comes last."""
    ordered = sorted(entries, key=lambda entry: entry.expect.get("error") == "refused")
    chosen = {entry.task if entry.is_honest else entry.family: entry for entry in reversed(ordered)}
    return sorted(chosen.values(), key=lambda entry: entry.name)


CORPUS = read_corpus()
LIMITS = [entry for entry in CORPUS if entry.family == KNOWN_LIMITS]
REFUSED = [entry for entry in CORPUS if entry.family != KNOWN_LIMITS]
CPU = [entry for entry in REFUSED if entry.device != "gpu"]
GPU = [entry for entry in REFUSED if entry.device != "cpu" and entry.level == "default"]
QUESTIONS = [(entry, entry.level) for entry in (CPU if SOAK else sample(CPU))]
LIMIT_QUESTIONS = [(entry, level) for entry in LIMITS for level in ("default", "exam")]


def id_of(question: Question) -> str:
    return f"{question[0].name}-{question[1]}"


async def judge_all(pool: DevicePool, questions: list[Question]) -> Evaluations:
    async with asyncio.TaskGroup() as group:
        judging = {id_of(question): group.create_task(judge(pool, *question)) for question in questions}
    return {name: task.result() for name, task in judging.items()}


async def judge(pool: DevicePool, entry: Entry, level: str) -> Evaluation:
    own = pool.devices[0].target
    task = narrow(entry, level)
    if entry.is_honest or (own and entry.device != "gpu"):
        task = small(task)
    return await evaluate(
        kernel_of(entry),
        task,
        pool=pool,
        targets=[target(own or entry.target)],
        seed=1,
        exam=level == "exam",
    )


def selected(request: pytest.FixtureRequest, tests: set[str]) -> list[Question]:
    """The parameters of the tests that are to run; the other entries need not be judged."""
    return [
        item.callspec.params["question"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname in tests
    ]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def evaluations(pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    return await judge_all(pool, selected(request, {"test_verdict", "test_known_limit"}))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gpu_evaluations(gpu_pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    return await judge_all(gpu_pool, selected(request, {"test_verdict_on_a_gpu"}))


def assert_expected(entry: Entry, evaluation: Evaluation) -> None:
    findings = {finding.kind for finding in getattr(evaluation, "findings", ())}
    kinds = {evaluation.error.kind} if evaluation.error is not None else findings or {""}
    if evaluation.latency and all(latency.outcome is not Outcome.FASTER for latency in evaluation.latency):
        kinds.add("no_gain")
    assert str(evaluation.verdict) in entry.expected("verdict"), evaluation.error
    assert kinds & set(entry.expected("error")), evaluation.error


@pytest.mark.parametrize("question", QUESTIONS, ids=id_of)
async def test_verdict(evaluations: Evaluations, question: Question) -> None:
    assert_expected(question[0], evaluations[id_of(question)])


@pytest.mark.parametrize("question", LIMIT_QUESTIONS if SOAK else LIMIT_QUESTIONS[:1], ids=id_of)
async def test_known_limit(evaluations: Evaluations, question: Question) -> None:
    entry, level = question
    evaluation = evaluations[id_of(question)]
    assert str(evaluation.verdict) in entry.expected(level), evaluation.error


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    "question", [(entry, entry.level) for entry in GPU] if not missing() else [], ids=id_of
)
async def test_verdict_on_a_gpu(gpu_evaluations: Evaluations, question: Question) -> None:
    """A trick that cannot run there, as numpy on a GPU's memory, may fail in another way than on a CPU."""
    entry, evaluation = question[0], gpu_evaluations[id_of(question)]
    if entry.is_honest or entry.device == "gpu":
        assert_expected(entry, evaluation)
    else:
        assert evaluation.verdict is not Verdict.CORRECT
        assert evaluation.verdict.counted or str(evaluation.verdict) in entry.expected("verdict"), (
            evaluation.error
        )


async def test_corpus_is_whole() -> None:
    for entry in CORPUS:
        ast.parse(kernel_of(entry))
        narrow(entry, entry.level)
    honest = [entry for entry in REFUSED if entry.is_honest]
    cheats = [entry for entry in REFUSED if not entry.is_honest]
    assert len(cheats) >= 250
    assert len(honest) >= 40
    assert len(LIMITS) <= 40
    assert {entry.task for entry in honest} == {entry.task for entry in cheats} == set(CASES)
