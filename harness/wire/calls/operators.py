"""Tensor operators that may run outside a candidate's kernels, by name: `add` for `aten::add`. Torch-free."""

from __future__ import annotations

ALLOCATING = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided"}
)
"""Their result is uninitialised; the judge poisons it."""

FILLING = frozenset({
    "zeros", "zeros_like", "new_zeros", "zero_", "zero",
    "ones", "ones_like", "new_ones",
    "full", "full_like", "new_full", "fill_", "fill",
    "arange", "scalar_tensor", "eye", "linspace",
    "rand", "randn", "randint",
})  # fmt: skip
"""Their values depend on no input."""

SETTING = frozenset({"fill_", "fill"})
"""Fills that copy an element if their value is a tensor."""

MOVING = frozenset({"clone", "copy_", "_to_copy", "contiguous", "lift_fresh_copy"})
"""Copies and casts. A copy of a kernel's output still counts as the kernel's."""

LOOKING = frozenset({
    "_local_scalar_dense", "detach", "detach_", "lift_fresh", "lift", "alias", "set_", "resize_", "_unsafe_view",
    "is_same_size", "record_stream", "_has_compatible_shallow_copy_type", "is_pinned", "_reshape_alias",
})  # fmt: skip
"""Kinds of view, and reads of one element (these are counted separately)."""

WITHOUT_MEMORY = frozenset({
    "_record_function_enter", "_record_function_enter_new", "_record_function_exit",
    "promote_types", "result_type", "can_cast",
})  # fmt: skip
"""Marks for a profiler, and questions about dtypes: they read and write no element."""

FREE = ALLOCATING | FILLING | MOVING | LOOKING | WITHOUT_MEMORY


def is_allowed(name: str, by_task: tuple[str, ...]) -> bool:
    """Return whether `name` may run. A task names its own operators as `add`, `aten.add` or `torch.add`."""
    return name in FREE or is_named(name, by_task)


def is_named(name: str, by_task: tuple[str, ...]) -> bool:
    """Return whether the task itself allows `name` to compute."""
    allowed = {operator.replace("::", ".").rsplit(".", 1)[-1].strip("_") for operator in by_task}
    return name.strip("_") in allowed
