"""Instructions for tasks of suites that ship none."""

from __future__ import annotations

from enum import StrEnum

from suites.public.task import EntryKind, PublicTask


class Instruction(StrEnum):
    """Which of two instructions a suite gives, where it has both."""

    SIMPLE = "simple"
    COMPLEX = "complex"


def reference_instruction(task: PublicTask) -> str:
    """Return an instruction that quotes the reference; empty if the task has none."""
    if task.reference is None:
        return ""
    kernels = [entry.name for entry in task.entry_points if entry.kind is EntryKind.KERNEL]
    names = ", ".join(f"`{entry.name}`" for entry in task.entry_points)
    launched = f" The test launches {', '.join(kernels)} itself: keep all parameters." if kernels else ""
    return (
        f"Write a faster Triton implementation of {names}, with the signatures and results of this reference.{launched}\n\n"
        f"```python\n{task.reference.text.strip()}\n```"
    )


def module_instruction(source: str) -> str:
    """Return the instruction of a task with a class `Model` as its reference."""
    return (
        "Write a class `ModelNew` with the constructor and the `forward` of `Model` below. Triton kernels do its work. "
        "It must give the results of `Model` for the inputs of `get_inputs()`, with the same parameters.\n\n"
        f"```python\n{source.strip()}\n```"
    )
