"""Instructions for tasks of suites that ship none."""

from __future__ import annotations

from suites.public.task import EntryKind, PublicTask

_RESIZED = (
    "Sizes are smaller than above, odd in some calls, and inputs may be drawn by `torch.randn`. Make no assumption about "
    "sizes or the sign of inputs."
)


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
        f"{_quoted_module(source)}"
        "How `ModelNew` is called:\n\n"
        "- It is built like `Model`: `torch.manual_seed(0)`, `ModelNew(*get_init_inputs())`, `.cuda()`. It may compute on "
        "the host then.\n"
        "- If its `state_dict()` has the names and shapes of `Model`'s, it gets `Model`'s values before each call, and "
        "values derived from parameters in the constructor are not made again. Else it keeps its own values: draw them in "
        "the order of `Model`'s constructor.\n"
        "- It is called without gradients, in training mode. A call changes no parameter; running statistics are not judged.\n"
        f"- {_RESIZED}"
    )


def shaped_instruction(source: str) -> str:
    """Return the instruction of a task with a class `Model` without parameters, and `_make_inputs` for its arguments."""
    return (
        f"{_quoted_module(source)}"
        "`ModelNew` is built with the arguments of `Model`, and called without gradients, with the arguments of `forward` by "
        f"name. `_make_inputs` only draws them. {_RESIZED}"
    )


def _quoted_module(source: str) -> str:
    return (
        "Write a class `ModelNew(nn.Module)` with the constructor and the `forward` of `Model` below. In `forward`, Triton "
        f"kernels compute everything; allocations, views, copies and casts are free.\n\n```python\n{source.strip()}\n```\n\n"
    )


def resized_instruction(task: PublicTask) -> str:
    """Return an instruction that quotes the reference, for calls at other sizes than the reference's own."""
    return f"{reference_instruction(task)}\n\n`Model` only prepares the arguments. {_RESIZED}"


def differentiable_instruction(task: PublicTask) -> str:
    """Return an instruction that quotes the reference, for calls whose gradients are judged too."""
    names = ", ".join(f"`{entry.name}`" for entry in task.entry_points)
    return (
        f"{resized_instruction(task)}\n\nThe result of {names} must be differentiable, for example through a "
        "`torch.autograd.Function`. The judge compares the result and the gradients of all tensors that require them; "
        "Triton kernels compute both."
    )
