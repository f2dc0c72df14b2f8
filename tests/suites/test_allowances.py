"""Allowances and axes of tasks: read from task.toml, and checked against cases and instruction."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites import Allowance, Axis, BadTask, Task, load_suite
from suites.folder import read_task
from tests.suites.folders import TASK, write_folder

AXES = "\n[axes]\nn = { min = 4, multiple_of = 4 }\n"
INSTRUCTION = "Write `double(x)`."


def read(parent: Path, text: str) -> None:
    read_task(write_folder(parent, task=text), suite="mine")


def test_default_allowance_is_offset_and_stated_allowances_are_read(tmp_path: Path) -> None:
    default = read_task(write_folder(tmp_path / "silent"), suite="mine")
    assert (default.allows, default.axes) == ((Allowance.OFFSET,), {})
    text = TASK.replace(INSTRUCTION, f"{INSTRUCTION} `x` may be non-contiguous and at any alignment.")
    text = text.replace(
        "[[entry",
        'allows = ["non-contiguous", "unaligned", "special-values", "degenerate-rows"]\n\n[[entry',
        1,
    )
    task = read_task(write_folder(tmp_path / "allowing", task=text + AXES), suite="mine")
    assert set(task.allows) == set(Allowance) - {Allowance.OFFSET}
    assert task.axes == {"n": Axis(min=4, multiple_of=4)}


@pytest.mark.parametrize(
    ("text", "key", "complaint"),
    [
        (TASK.replace("[[entry", 'allows = ["strides"]\n[[entry', 1), "allows[0]", "one of offset, unaligned"),
        (TASK.replace("[[entry", 'allows = ["non-contiguous"]\n[[entry', 1), "allows", "does not say that such inputs"),
        (TASK.replace("[[entry", 'allows = ["unaligned"]\n[[entry', 1), "allows", "does not say that such inputs"),
        (TASK + "[axes]\nm = {}\n", "axes.m", "is no axis of the cases"),
        (TASK + "[axes]\nn = { min = -1 }\n", "axes.n.min", "must not be negative"),
        (TASK + "[axes]\nn = { multiple_of = 0 }\n", "axes.n.multiple_of", "at least 1"),
        (TASK + "[axes]\nn = { multiple_of = 3 }\n", "axes.n", "does not hold for case plain, which has size 100"),
        (TASK + "[axes]\nn = { min = 101 }\n", "axes.n", "does not hold for case plain"),
        (TASK + "[axes]\nn = { minimum = 1 }\n", "axes[...].minimum", "unknown key"),
        (TASK.replace(INSTRUCTION, f"{INSTRUCTION} `n` is any positive number.") + "[axes]\nn = { min = 0 }\n", "axes.n.min", "promises"),
        (TASK.replace("gpu = { n = 1000000 }", "gpu = { n = 1000000 }\nexam = true"), "cases", "all for the exam"),
    ],
    ids=lambda value: value if len(value) < 40 else "",
)  # fmt: skip
def test_allowance_that_contradicts_the_task_is_an_error(
    tmp_path: Path, text: str, key: str, complaint: str
) -> None:
    with pytest.raises(BadTask) as caught:
        read(tmp_path, text)
    assert caught.value.key == key
    assert complaint in str(caught.value)


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_starter_task_allows_only_what_its_instruction_permits(task: Task) -> None:
    """Every instruction promises contiguous inputs and positive sizes, so hidden cases must keep both promises."""
    assert "contiguous" in task.instruction
    assert "any positive numbers" in task.instruction or "any positive number:" in task.instruction
    assert not {Allowance.NON_CONTIGUOUS, Allowance.UNALIGNED} & set(task.allows)
    assert set(task.axes) == set(task.cases[0].cpu)
    assert {axis.min for axis in task.axes.values()} == {1}
