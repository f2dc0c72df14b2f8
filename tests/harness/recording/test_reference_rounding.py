"""Protects kernels that are more exact than a reference which rounds, and that wrong kernels stay refused beside it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from harness import DevicePool, Verdict
from suites import Task
from suites.public.task import ReferenceKind
from suites.task import QuantizationTolerance
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.rounding_references import (
    QUANTIZED_WEIGHTS,
    QUANTIZED_WEIGHTS_MUTANTS,
    ROUNDINGS,
    WEIGHTS,
    WEIGHTS_TEST,
    with_replacements,
)
from tests.support.tasks.scripts import public_task, record

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


NAMES = drawn([*ROUNDINGS], 1)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def recorded(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    tasks = {}
    for name in NAMES:
        rounding, folder = ROUNDINGS[name], tmp_path_factory.mktemp(name)
        public = public_task(rounding.reference, rounding.test, folder, name)
        tasks[name] = await record(pool, public)
    return tasks


@pytest.mark.parametrize(
    ("name", "mutant"), [(name, mutant) for name in NAMES for mutant in drawn([*ROUNDINGS[name].mutants], 1)]
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


@pytest.mark.parametrize("name", NAMES)
async def test_a_kernel_that_is_more_exact_than_its_reference_is_right(
    pool: DevicePool, recorded: dict[str, Task], name: str
) -> None:
    rounding = ROUNDINGS[name]
    evaluation = await judge_task(pool, with_replacements(rounding.reference, rounding.exact), recorded[name])
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quantized(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("quantized")
    public = msgspec.structs.replace(
        public_task(WEIGHTS, "import torch\n" + WEIGHTS_TEST, folder, "linear_w4"),
        reference_kind=ReferenceKind.TORCH,
        quantization=QuantizationTolerance(cosine_min=0.9, relative_l1_max=0.1, rmse_max=0.15),
        widths={"weight": 4},
    )
    return await record(pool, public)


async def test_a_quantization_as_stated_is_right_even_if_its_width_misses_the_limits(
    pool: DevicePool, quantized: Task
) -> None:
    evaluation = await judge_task(pool, QUANTIZED_WEIGHTS, quantized)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    assert len(quantized.cases) == 2


@pytest.mark.parametrize("mutant", drawn([*QUANTIZED_WEIGHTS_MUTANTS], 1))
async def test_a_wrong_quantization_is_refused_where_limits_are_widened(
    pool: DevicePool, quantized: Task, mutant: str
) -> None:
    source = with_replacements(QUANTIZED_WEIGHTS, QUANTIZED_WEIGHTS_MUTANTS[mutant])
    assert (await judge_task(pool, source, quantized)).verdict is Verdict.WRONG


async def test_a_reference_that_ends_its_process_for_other_inputs_has_no_noise(
    pool: DevicePool, tmp_path: Path
) -> None:
    rounding = ROUNDINGS["linear"]
    ends = "    if not torch.equal(x, x.half().float()):\n        import os\n        os._exit(1)\n"
    reference = rounding.reference.replace("    out = torch.empty(", f"{ends}    out = torch.empty(")
    test = rounding.test.replace("return linear(x, w, b)", "return linear(x.half().float(), w, b)")
    public = public_task(reference, test, tmp_path, "linear")
    task = await record(pool, public)
    exact = with_replacements(rounding.reference, rounding.exact)
    assert (
        await judge_task(pool, exact.replace("out += tl.dot", "out += 1.002 * tl.dot"), task)
    ).verdict is Verdict.WRONG
