"""Kernels that cheat, and honest ones that look it: each file is one of them and says what must come of it.

`EXPECT` is the verdict and the error's kind, or the verdicts and kinds where more than one check may be the first to see it; the
docstring tells the trick. `CASES` names the cases that the trick needs, where those of `CASES` below do not show it, and
`SIZES = "whole"` keeps their sizes, `SIZES = {axis: size}` sets some. `VALUES = "drawn"` keeps degenerate rows from a trick that could not bear them.
`TARGET` names the target on `cpu` where a trick is one on it alone.
`DEVICE = "gpu"` marks what only a GPU can play, `"cpu"` what the small sizes of the GPU's tests do not show, or what is a trick on
the target of `cpu` alone. All are judged side by side.
"""

from __future__ import annotations

import ast
import asyncio
import functools
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, Verdict, evaluate, target
from suites import Task, load_task
from suites.task import Allowance
from tests.support.gpu import gpu_pool, missing, needs_gpu, small

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.judge, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="session")]
FOLDER = Path(__file__).parent
CASES = {
    "softmax": ("fp32", "fp16"),
    "vector_add": ("fp32-ragged", "fp16-ragged"),
    "matmul": ("ragged",),
    "layer_norm": ("fp32-ragged", "fp16-ragged"),
    "flip": ("fp32-ragged", "fp16-narrow"),
    "rms_norm_residual": ("fp32-ragged", "fp16"),
    "cross_entropy": ("fp32", "fp16-outlier"),
    "matmul_w8a8": ("ragged",),
}
"""Enough of each task to show what a file is about; the tests of the suite run all of them."""
ROWS = 8


FILES = sorted([*FOLDER.glob("cheats/*.py"), *FOLDER.glob("honest/*.py")])
SOURCES = {file: file.read_text(encoding="utf-8") for file in FILES}


@functools.cache
def statements(file: Path) -> list[ast.stmt]:
    return ast.parse(SOURCES[file]).body


def constant(file: Path, name: str, default: Any = None) -> Any:
    for node in statements(file):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            return ast.literal_eval(node.value)
    assert default is not None, f"{file.name} has no {name}"
    return default


ON_GPU = [file for file in FILES if constant(file, "DEVICE", "any") == "gpu"]
ON_CPU_ALONE = [file for file in FILES if constant(file, "DEVICE", "any") == "cpu"]
ON_CPU = [file for file in FILES if file not in ON_GPU]
FOR_GPU = [file for file in FILES if file not in ON_CPU_ALONE]


Evaluations = dict[Path, Evaluation]


def narrowed(file: Path) -> Task:
    """The task with few cases of few rows: a cheat gets the first of them, an honest kernel all, on a GPU's sizes too."""
    task = load_task(constant(file, "TASK"))
    honest = file.parent.name == "honest"
    wanted = constant(file, "CASES", CASES[task.name][: None if honest else 1])
    cases = [case for case in task.cases if case.name in wanted]
    assert len(cases) == len(wanted), f"{file.name} names a case that {task.name} does not have"
    if constant(file, "VALUES", "all") == "drawn":
        task = msgspec.structs.replace(task, allows=tuple(set(task.allows) - {Allowance.DEGENERATE_ROWS}))
    sizes = constant(file, "SIZES", "few")
    if isinstance(sizes, dict):
        cases = [msgspec.structs.replace(case, cpu=case.cpu | sizes) for case in cases]
    elif sizes == "few":
        cases = [msgspec.structs.replace(case, cpu=few_rows(case.cpu)) for case in cases]
    task = msgspec.structs.replace(task, cases=tuple(cases))
    return small(task) if honest else task


def few_rows(sizes: dict[str, int]) -> dict[str, int]:
    """A row is a program in most files, and a program a millisecond."""
    return {axis: min(size, ROWS) if axis == "rows" else size for axis, size in sizes.items()}


async def judge_all(pool: DevicePool, tasks: dict[Path, Task]) -> Evaluations:
    own = pool.devices[0].target
    async with asyncio.TaskGroup() as group:
        judging = {
            file: group.create_task(
                evaluate(
                    SOURCES[file],
                    task,
                    pool=pool,
                    targets=[target(own or constant(file, "TARGET", "gfx942"))],
                    seed=1,
                ),
                name=file.stem,
            )
            for file, task in tasks.items()
        }
    return {file: task.result() for file, task in judging.items()}


def selected(request: pytest.FixtureRequest, test: str) -> list[Path]:
    """The files of the parametrised test that are to run; the others need not be judged."""
    return [
        item.callspec.params["file"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test
    ]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def evaluations(pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    files = selected(request, "test_verdict_is_the_expected_one")
    return await judge_all(pool, {file: narrowed(file) for file in files})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gpu_evaluations(gpu_pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    files = selected(request, "test_no_cheat_is_correct_and_no_honest_kernel_refused_on_a_gpu")
    return await judge_all(
        gpu_pool, {file: narrowed(file) if file in ON_GPU else small(narrowed(file)) for file in files}
    )


def assert_expected(file: Path, found: Evaluation) -> None:
    kind = found.error.kind if found.error is not None else ""
    verdicts, kinds = ((one,) if isinstance(one, str) else one for one in constant(file, "EXPECT"))
    assert str(found.verdict) in verdicts, found.error
    assert kind in kinds, found.error


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


@pytest.mark.parametrize("file", ON_CPU, ids=name_of)
async def test_verdict_is_the_expected_one(evaluations: Evaluations, file: Path) -> None:
    assert_expected(file, evaluations[file])


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("file", FOR_GPU if not missing() else [], ids=name_of)
async def test_no_cheat_is_correct_and_no_honest_kernel_refused_on_a_gpu(
    gpu_evaluations: Evaluations, file: Path
) -> None:
    """What cannot run there, as numpy on a GPU's memory, may fail in another way than on a CPU."""
    found = gpu_evaluations[file]
    if file in ON_GPU or file.parent.name == "honest":
        assert_expected(file, found)
    else:
        assert found.verdict is not Verdict.CORRECT
        assert found.verdict.counted or str(found.verdict) in constant(file, "EXPECT")[0], found.error


async def test_every_cheat_has_an_honest_neighbour() -> None:
    cheats = [file for file in FILES if file.parent.name == "cheats"]
    honest = [file for file in FILES if file.parent.name == "honest"]
    assert len(cheats) >= 70
    assert len(honest) >= 40
    for files in (cheats, honest):
        assert {constant(file, "TASK") for file in files} == set(CASES)
