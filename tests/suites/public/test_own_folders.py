"""Folders that a person makes (launches of tritonparse, tasks of GEAK), and references that are a part of a package (aiter)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from suites.public.clone import Clone, kinds_of
from suites.public.loader import load_clone
from suites.public.task import EntryKind, PublicTask, SuiteKind, TestForm
from tests.suites.public import clones


def loaded(kind: SuiteKind, write: Callable[[Path], Path], root: Path) -> dict[str, PublicTask]:
    folder = write(root)
    assert kinds_of(folder) == (kind,)
    return {task.name: task for task in load_clone(Clone("own", kind, folder)).tasks}


def test_launch_of_tritonparse_is_a_task(tmp_path: Path) -> None:
    tasks = loaded(SuiteKind.TRITONPARSE, clones.tritonparse, tmp_path / "repros")
    assert list(tasks) == ["scale_kernel-line3", "scale_kernel-line4", "scale_kernel-line5"]
    for name in ("scale_kernel-line3", "scale_kernel-line4"):
        task = tasks[name]
        assert task.unsupported == ""
        assert [(entry.name, entry.kind) for entry in task.entry_points] == [
            ("_scale_kernel", EntryKind.KERNEL)
        ]
        assert "autotune" not in task.reference.text, "the launch has the values of one configuration"
        assert "def scale" not in task.reference.text
        launch = ast.parse(task.test.text).body[-1]
        assert ast.unparse(launch).startswith(
            "_scale_kernel[2,](x_ptr=draw(torch.float32, [10, 10], [1, 10], 3"
        )
        assert ast.unparse(launch).endswith(
            "n=100, factor=float('2.0'), BLOCK=64, num_warps=2, num_stages=1)"
        )
    assert "is missing; use --kernel-import copy" in tasks["scale_kernel-line5"].unsupported


def test_task_folder_of_geak_needs_no_settings(tmp_path: Path) -> None:
    tasks = loaded(SuiteKind.GEAK_TASKS, clones.geak_tasks, tmp_path / "tasks")
    for name in ("settings", "plain"):
        task = tasks[name]
        assert (task.unsupported, [entry.name for entry in task.entry_points]) == ("", ["scale"])
        assert (task.test_form, task.runner) == (TestForm.RUNNER, "")
    assert tasks["plain"].arguments == ("--correctness",)
    assert "no test program" in tasks["alone"].unsupported


def test_operator_of_aiter_is_one_module_without_the_package(tmp_path: Path) -> None:
    tasks = loaded(SuiteKind.AITER, clones.aiter, tmp_path / "aiter")
    task = tasks["scale"]
    assert (task.unsupported, task.vendor, task.oracles) == ("", "amd", ("torch_scale",))
    assert [entry.signature for entry in task.entry_points] == ["scale(x: torch.Tensor)"]
    assert task.modules == ("aiter.ops.triton.scale",)
    text = task.reference.text
    assert "import aiter" not in text
    assert "from aiter" not in text
    assert text.index("Notes = Logger") < text.index("_NOTES = Notes()") < text.index("def scale(")
    assert text.index("def block") < text.index("arch_info.block = block") < text.index("def scale(")
    assert tasks["more-compiled"].unsupported.endswith("it needs aiter.jit")
    assert tasks["more-common"].unsupported.endswith("it needs aiter.test_common")
    assert "reads files of the package" in tasks["more-files"].unsupported
