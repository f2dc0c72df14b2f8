"""Protects honest kernels from false refusals: the judge must find every kernel of `kernels/` correct.

Each file in `kernels/` is a candidate in the style of a library or a model. Its docstring names one feature that the judge once
refused falsely. `TASK` names a starter task, or a task of `tasks/` if no starter task can show the feature. The baselines of
`tasks/` are judged, too.

Without `WAVEDECK_SOAK=1`, `host_code_of_libraries` and five kernels of `SAMPLE` are judged. `pytest -m gpu` judges all
kernels on a GPU.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, Verdict, evaluate, target
from suites import Task, load_task
from suites.folder import read_task
from tests.conftest import SOAK
from tests.support.draws import drawn
from tests.support.judge.gpu import gpu_pool, missing, needs_gpu, small

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.judge, pytest.mark.timeout(1800), pytest.mark.asyncio(loop_scope="session")]
FOLDER = Path(__file__).parent
KERNELS = sorted(FOLDER.glob("kernels/*.py"))
HOST_CODE = FOLDER / "kernels/host_code_of_libraries.py"
BASELINES = sorted(FOLDER.glob("tasks/*/baseline.py"))
SAMPLE = {
    "add_into_flat_views",
    "aliased_builtins",
    "autotune_skips_static_assert",
    "constant_by_index",
    "constant_on_the_left",
    "device_guard_class",
    "kernels_of_a_factory",
    "libdevice_tanh_by_name",
    "loops_bounded_by_memory",
    "string_annotations",
    "triton_math_by_name",
}
"""One kernel for each frequent cause: `make test` judges five of them, `make soak` judges all kernels."""
ROWS = 6


def name_of(file: Path) -> str:
    return f"{file.parent.name}/baseline" if file in BASELINES else file.stem


def task_of(file: Path) -> Task:
    """The kernel's task with few cases: all cases of a task of `tasks/`, or a starter task's first case with few rows."""
    name = file.parent.name if file in BASELINES else declared_task(file)
    if (FOLDER / "tasks" / name).is_dir():
        return read_task(FOLDER / "tasks" / name, suite="honest")
    task = load_task(name)
    case = task.open_cases[0]
    cpu = case.cpu | {"rows": min(case.cpu["rows"], ROWS)} if "rows" in case.cpu else case.cpu
    return msgspec.structs.replace(task, cases=(msgspec.structs.replace(case, cpu=cpu),))


def declared_task(file: Path) -> str:
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=[ast.Name("TASK")], value=ast.Constant(str(name))):
                return name
    raise AssertionError(f"{file.name} names no TASK")


Evaluations = dict[Path, Evaluation]


async def judge_selected(
    pool: DevicePool, request: pytest.FixtureRequest, test: str, tasks: dict[Path, Task]
) -> Evaluations:
    """Judges all files that the test `test` needs in parallel, in one pool."""
    files = [
        item.callspec.params["file"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test
    ]
    targets = [target(pool.devices[0].target or "gfx942")]
    async with asyncio.TaskGroup() as group:
        judging = {
            file: group.create_task(
                evaluate(file.read_text(encoding="utf-8"), tasks[file], pool, targets=targets, seed=1),
                name=name_of(file),
            )
            for file in files
        }
    return {file: evaluation.result() for file, evaluation in judging.items()}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def evaluations(pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    tasks = {file: task_of(file) for file in [*KERNELS, *BASELINES]}
    return await judge_selected(pool, request, "test_kernel_is_correct", tasks)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gpu_evaluations(gpu_pool: DevicePool, request: pytest.FixtureRequest) -> Evaluations:
    tasks = {file: small(task_of(file)) for file in [*KERNELS, *BASELINES]}
    return await judge_selected(gpu_pool, request, "test_kernel_is_correct_on_a_gpu", tasks)


def assert_correct(evaluation: Evaluation) -> None:
    error = evaluation.error
    refusal = f"{error.kind}, line {error.line}: {error.message}\n{error.trace}" if error else "no error"
    assert evaluation.verdict is Verdict.CORRECT, f"{evaluation.verdict} ({refusal})"


@pytest.mark.parametrize(
    "file",
    [*KERNELS, *BASELINES]
    if SOAK
    else [HOST_CODE, *drawn([file for file in KERNELS if file.stem in SAMPLE], 5)],
    ids=name_of,
)
async def test_kernel_is_correct(evaluations: Evaluations, file: Path) -> None:
    assert_correct(evaluations[file])


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("file", [] if missing() else [*KERNELS, *BASELINES], ids=name_of)
async def test_kernel_is_correct_on_a_gpu(gpu_evaluations: Evaluations, file: Path) -> None:
    assert_correct(gpu_evaluations[file])


async def test_sample_and_tasks_have_kernels() -> None:
    assert {file.stem for file in KERNELS} >= SAMPLE
    names = {file.parent.name for file in BASELINES}
    assert names <= {declared_task(file) for file in KERNELS}
