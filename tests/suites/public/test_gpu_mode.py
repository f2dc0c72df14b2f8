"""Problems of GPU MODE: what a task says, what its text gives, and why some problems cannot be judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.public.clone import Clone
from suites.public.loader import load_clone
from suites.public.task import PublicTask, ReferenceKind, SuiteKind, TestForm
from suites.task import Tolerance
from tests.suites.public import clones


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, PublicTask]:
    clone = Clone("gpu-mode", SuiteKind.GPU_MODE, clones.gpu_mode(tmp_path / "reference-kernels"))
    return {task.name: task for task in load_clone(clone).tasks}


def test_problem_has_its_function_and_its_limits(tasks: dict[str, PublicTask]) -> None:
    task = tasks["amd-twice"]
    assert (task.unsupported, task.file, task.title, task.category) == (
        "",
        "amd/twice",
        "Double a vector",
        "amd",
    )
    assert [entry.signature for entry in task.entry_points] == ["custom_kernel(data)"]
    assert (task.reference_kind, task.test_form) == (ReferenceKind.TORCH, TestForm.SCRIPT)
    assert task.tolerances["float32"] == Tolerance(rtol=1e-3, atol=1e-8)
    assert task.tolerances["float16"].ulps > 1, "1e-8 is less than a step of 16 bits"
    assert tasks["pmpp_v2-scaled_py"].tolerances == {}, "its limits depend on the inputs"
    assert "write the results there" in task.instruction


def test_reference_is_one_module_and_fills_the_given_tensors(tasks: dict[str, PublicTask]) -> None:
    task = tasks["amd-twice"]
    assert task.test.text.index("'size': 3,") < task.test.text.index("'size': 300")
    assert "9000" not in task.test.text
    assert "from utils" not in task.script
    assert "make_match_reference" not in task.script
    calls = []
    text = task.script.replace("import torch\n", "")
    text = text.replace("custom_kernel(generate_input(**arguments))", "calls.append(arguments)")
    names = {"calls": calls}
    exec(compile(text, "script", "exec"), names)  # noqa: S102 -- the fixture above
    assert [call["size"] for call in calls] == [3, 300]

    class Tensor(list[int]):
        def __rmul__(self, factor: object) -> Tensor:
            return Tensor(2 * item for item in self)

        def copy_(self, source: Tensor) -> None:
            self[:] = source

    output = Tensor([0])
    assert names["custom_kernel"]((Tensor([4]), output)) is output  # type: ignore[operator]
    assert output == [8]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("amd-several", "several GPUs"),
        ("amd-package", "kernels of the package aiter"),
        ("amd-evaluator", "does not define generate_input"),
        ("pmpp_v2-properties", "properties of a factorization"),
    ],
)
def test_problem_that_cannot_be_judged_has_its_reason(
    tasks: dict[str, PublicTask], name: str, reason: str
) -> None:
    assert reason in tasks[name].unsupported
