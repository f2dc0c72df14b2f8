"""Names of dtypes and their sizes, known without torch; the 8-bit floats, which differ by target."""

from __future__ import annotations

import msgspec

from suites.task import Case, Output, Task

ITEM_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Bytes an element, by the dtype's name: every dtype that a tensor of a task may have."""

BY_TARGET: dict[str, tuple[str, str]] = {
    "fp8_e4m3": ("float8_e4m3fn", "float8_e4m3fnuz"),
    "fp8_e5m2": ("float8_e5m2", "float8_e5m2fnuz"),
}
"""What a task may write for the 8-bit floats that the target has: the OCP dtype, and AMD's of gfx940 to gfx942."""

TASK_DTYPES: tuple[str, ...] = (*ITEM_BYTES, *BY_TARGET)
"""Every dtype that a task may write."""

FNUZ_TARGETS = frozenset({"gfx940", "gfx941", "gfx942"})
WITHOUT_FP8 = frozenset({"gfx90a", "gfx908", "sm_80"})
"""Targets whose matrix units know no 8-bit floats."""


class NoSuchDtype(ValueError):
    """The target has no such dtype: it cannot say anything of the task."""


def item_bytes(dtype: str) -> int:
    """Bytes of one element; `ValueError` for a name that is no dtype of a task."""
    if dtype not in TASK_DTYPES:
        raise ValueError(f"{dtype!r} is no dtype; one of {', '.join(TASK_DTYPES)}")
    return ITEM_BYTES[BY_TARGET.get(dtype, (dtype,))[0]]


def is_exact(dtype: str) -> bool:
    """Whether outputs of the dtype are compared exactly: integers and booleans."""
    return "float" not in dtype and dtype not in BY_TARGET


def on_target(dtype: str, target: str) -> str:
    """The torch dtype that a task's dtype means on a target, by its name; `NoSuchDtype` where it means none."""
    if dtype not in BY_TARGET:
        return dtype
    if target in WITHOUT_FP8:
        raise NoSuchDtype(f"{target} has no 8-bit floating point ({dtype})")
    return BY_TARGET[dtype][target in FNUZ_TARGETS]


def task_on(task: Task, target: str) -> Task:
    """The task with every dtype as it is on a target; `NoSuchDtype` where the target lacks one."""
    return msgspec.structs.replace(
        task,
        cases=tuple(_case(case, target) for case in task.cases),
        outputs=tuple(_output(output, target) for output in task.outputs),
        tolerances={_known(dtype, target): one for dtype, one in task.tolerances.items()},
    )


def _case(case: Case, target: str) -> Case:
    return msgspec.structs.replace(case, dtype=on_target(case.dtype, target))


def _output(output: Output, target: str) -> Output:
    tolerances = {_known(dtype, target): one for dtype, one in output.tolerances.items()}
    return msgspec.structs.replace(output, dtype=on_target(output.dtype, target), tolerances=tolerances)


def _known(dtype: str, target: str) -> str:
    """A tolerance may be for a dtype that no case of this target has."""
    return dtype if target in WITHOUT_FP8 else on_target(dtype, target)
