"""Folders that a person makes (tasks of GEAK), and references that are a part of a package (aiter)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from suites.public.clone import Clone, kinds_of
from suites.public.loader import load_clone
from suites.public.task import PublicTask, SuiteKind, TestForm
from tests.suites.public import clones


def loaded(kind: SuiteKind, write: Callable[[Path], Path], root: Path) -> dict[str, PublicTask]:
    folder = write(root)
    assert kinds_of(folder) == (kind,)
    return {task.name: task for task in load_clone(Clone("own", kind, folder)).tasks}


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
