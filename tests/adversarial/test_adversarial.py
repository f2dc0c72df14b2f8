"""Kernels that cheat, and honest ones that look it: each file is one of them and says what must come of it.

`EXPECT` is the verdict and the error's kind, or the kinds where more than one check may be the first to see it; the
docstring tells the trick. `CASES` names the cases that the trick needs, where the few of `CASES` below do not show it.
`DEVICE = "gpu"` marks what only a GPU can play. All are judged side by side.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, evaluate, target
from suites import load_task

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
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


FILES = sorted([*FOLDER.glob("cheats/*.py"), *FOLDER.glob("honest/*.py")])
SOURCES = {file: file.read_text(encoding="utf-8") for file in FILES}


def constant(file: Path, name: str, default: Any = None) -> Any:
    for node in ast.parse(SOURCES[file]).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            return ast.literal_eval(node.value)
    assert default is not None, f"{file.name} has no {name}"
    return default


ON_CPU = [file for file in FILES if constant(file, "DEVICE", "cpu") == "cpu"]


async def judge(pool: DevicePool, file: Path) -> Evaluation:
    task = load_task(constant(file, "TASK"))
    wanted = constant(file, "CASES", CASES[task.name])
    cases = tuple(case for case in task.cases if case.name in wanted)
    assert len(cases) == len(wanted), f"{file.name} names a case that {task.name} does not have"
    return await evaluate(
        SOURCES[file],
        msgspec.structs.replace(task, cases=cases),
        pool=pool,
        targets=[target("gfx942")],
        seed=1,
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def evaluations(pool: DevicePool, request: pytest.FixtureRequest) -> dict[Path, Evaluation]:
    wanted = {
        item.callspec.params["file"]
        for item in request.session.items
        if hasattr(item, "callspec") and "file" in item.callspec.params
    }
    async with asyncio.TaskGroup() as group:
        tasks = {file: group.create_task(judge(pool, file)) for file in ON_CPU if file in wanted}
    return {file: task.result() for file, task in tasks.items()}


@pytest.mark.parametrize("file", ON_CPU, ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_verdict_is_the_expected_one(evaluations: dict[Path, Evaluation], file: Path) -> None:
    found = evaluations[file]
    kind = found.error.kind if found.error is not None else ""
    verdict, kinds = constant(file, "EXPECT")
    assert str(found.verdict) == verdict, found.error
    assert kind in ((kinds,) if isinstance(kinds, str) else kinds), found.error


async def test_every_cheat_has_an_honest_neighbour() -> None:
    cheats = [file for file in FILES if file.parent.name == "cheats"]
    honest = [file for file in FILES if file.parent.name == "honest"]
    assert len(cheats) >= 70
    assert len(honest) >= 40
    for files in (cheats, honest):
        assert {constant(file, "TASK") for file in files} == set(CASES)
