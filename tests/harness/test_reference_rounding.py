"""Protects kernels that are more exact than a reference which rounds, and that wrong kernels stay refused beside it."""

from __future__ import annotations

import pytest
import pytest_asyncio

from harness import DevicePool, Verdict, target
from harness.recording.recorder import record_task
from suites import Task
from tests.support.judging import judge_task
from tests.support.rounding_references import ROUNDINGS, with_replacements
from tests.support.scripts import public_task

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def recorded(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    tasks = {}
    for name, rounding in ROUNDINGS.items():
        folder = tmp_path_factory.mktemp(name)
        public = public_task(rounding.reference, rounding.test, folder, name)
        tasks[name] = await record_task(public, folder / name, pool=pool, target=target("gfx942"))
    return tasks


@pytest.mark.parametrize(
    ("name", "mutant"),
    [(name, mutant) for name, rounding in ROUNDINGS.items() for mutant in rounding.mutants],
)
async def test_a_wrong_kernel_is_refused_beside_a_reference_that_rounds(
    pool: DevicePool, recorded: dict[str, Task], name: str, mutant: str
) -> None:
    rounding = ROUNDINGS[name]
    exact = with_replacements(rounding.reference, rounding.exact)
    evaluation = await judge_task(pool, with_replacements(exact, rounding.mutants[mutant]), recorded[name])
    assert evaluation.verdict is Verdict.WRONG
    assert evaluation.error is not None
    assert evaluation.error.mismatch is not None


@pytest.mark.parametrize("name", ROUNDINGS)
async def test_a_kernel_that_is_more_exact_than_its_reference_is_right(
    pool: DevicePool, recorded: dict[str, Task], name: str
) -> None:
    rounding = ROUNDINGS[name]
    evaluation = await judge_task(pool, with_replacements(rounding.reference, rounding.exact), recorded[name])
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
