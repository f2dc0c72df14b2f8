"""Names and sizes of dtypes, without torch, and the 8-bit floats of each target."""

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
"""Bytes per element, for every dtype that a tensor of a task may have."""

BY_TARGET: dict[str, tuple[str, str]] = {
    "fp8_e4m3": ("float8_e4m3fn", "float8_e4m3fnuz"),
    "fp8_e5m2": ("float8_e5m2", "float8_e5m2fnuz"),
}
"""Names for the 8-bit float of the target: the OCP dtype, and the dtype of gfx940 to gfx942."""

TASK_DTYPES: tuple[str, ...] = (*ITEM_BYTES, *BY_TARGET)
"""Every dtype name that a `task.toml` may use."""

OCP = frozenset(dtypes[0] for dtypes in BY_TARGET.values())
FNUZ_TARGETS = frozenset({"gfx940", "gfx941", "gfx942"})
WITHOUT_FP8 = frozenset({"gfx90a", "gfx908", "sm_80"})
"""Targets without 8-bit floats in their matrix units."""


class NoSuchDtype(ValueError):
    """The target does not have a dtype of the task, so it cannot judge the task."""


def item_bytes(dtype: str) -> int:
    """Return the bytes of one element. Raises `ValueError` for an unknown name."""
    if dtype not in TASK_DTYPES:
        raise ValueError(f"{dtype!r} is no dtype; dtypes are {', '.join(TASK_DTYPES)}")
    return ITEM_BYTES[BY_TARGET.get(dtype, (dtype,))[0]]


def is_exact(dtype: str) -> bool:
    """Return whether a dtype is an integer or a boolean, by its name. Outputs of such a dtype need no tolerance.

    Only for the check of a task's tolerances. The comparison of outputs is in `harness/worker/oracle/comparison/compare.py`.
    """
    return "float" not in dtype and dtype not in BY_TARGET


def on_target(dtype: str, target: str) -> str:
    """Return the name of the torch dtype on a target. Raises `NoSuchDtype` if the target does not have it."""
    if dtype in OCP and target in FNUZ_TARGETS | WITHOUT_FP8:
        raise NoSuchDtype(f"{target} has no {dtype}; judge the task for gfx950 or sm_90 (--targets)")
    if dtype not in BY_TARGET:
        return dtype
    if target in WITHOUT_FP8:
        raise NoSuchDtype(
            f"{target} has no 8-bit floating point ({dtype}); judge the task for gfx942 or sm_90 (--targets)"
        )
    return BY_TARGET[dtype][target in FNUZ_TARGETS]


def task_on(task: Task, target: str) -> Task:
    """Return the task with the torch dtypes of a target. Raises `NoSuchDtype` if the target lacks a dtype.

    Recorded calls are as they are.
    """
    if task.script is not None:
        return task
    return msgspec.structs.replace(
        task,
        cases=tuple(_case(case, target) for case in task.cases),
        outputs=tuple(_output(output, target) for output in task.outputs),
        tolerances={_tolerance_dtype(dtype, target): limit for dtype, limit in task.tolerances.items()},
    )


def _case(case: Case, target: str) -> Case:
    outputs = tuple(_output(output, target) for output in case.outputs)
    return msgspec.structs.replace(case, dtype=on_target(case.dtype, target), outputs=outputs)


def _output(output: Output, target: str) -> Output:
    tolerances = {_tolerance_dtype(dtype, target): limit for dtype, limit in output.tolerances.items()}
    return msgspec.structs.replace(output, dtype=on_target(output.dtype, target), tolerances=tolerances)


def _tolerance_dtype(dtype: str, target: str) -> str:
    # A tolerance may name an 8-bit float although no case of this target uses it.
    is_foreign = target in WITHOUT_FP8 or (dtype in OCP and target in FNUZ_TARGETS)
    return dtype if is_foreign else on_target(dtype, target)
