"""Kernels that cheat, and honest ones that look it: each file is one of them and says what must come of it.

`EXPECT` is the verdict and the error's kind; the docstring tells the trick. All are judged side by side.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
FOLDER = Path(__file__).parent
FILES = sorted([*FOLDER.glob("cheats/*.py"), *FOLDER.glob("honest/*.py")])


def constant(file: Path, name: str) -> object:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            return ast.literal_eval(node.value)
    raise AssertionError(f"{file.name} has no {name}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def evaluations(pool: DevicePool, request: pytest.FixtureRequest) -> dict[Path, Evaluation]:
    wanted = {
        item.callspec.params["file"]
        for item in request.session.items
        if hasattr(item, "callspec") and "file" in item.callspec.params
    }
    async with asyncio.TaskGroup() as group:
        tasks = {
            file: group.create_task(
                judge(pool, file.read_text(encoding="utf-8"), str(constant(file, "TASK")))
            )
            for file in FILES
            if file in wanted
        }
    return {file: task.result() for file, task in tasks.items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_verdict_is_the_expected_one(evaluations: dict[Path, Evaluation], file: Path) -> None:
    found = evaluations[file]
    kind = found.error.kind if found.error is not None else ""
    assert (str(found.verdict), kind) == constant(file, "EXPECT"), found.error


async def test_every_cheat_has_an_honest_neighbour() -> None:
    assert len(list(FOLDER.glob("cheats/*.py"))) >= 15
    assert len(list(FOLDER.glob("honest/*.py"))) >= 10
