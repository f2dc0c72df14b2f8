"""Which tensor operators may run outside a candidate's kernels. Names are as `aten::add` without the prefix. Torch-free."""

from __future__ import annotations

ALLOCATING = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided"}
)
"""Their memory holds whatever was there; it is poisoned."""

FILLING = frozenset({
    "zeros", "zeros_like", "new_zeros", "zero_", "zero",
    "ones", "ones_like", "new_ones",
    "full", "full_like", "new_full", "fill_", "fill",
    "arange", "scalar_tensor", "eye", "linspace",
    "rand", "randn", "randint",
})  # fmt: skip
"""Fresh values that depend on no input."""

SETTING = frozenset({"fill_", "fill"})
"""Of these, what copies an element where it is given a tensor."""

MOVING = frozenset({"clone", "copy_", "_to_copy", "contiguous", "lift_fresh_copy"})
"""Copies and casts: they compute nothing, and what they copy from a kernel's output still counts as the kernel's."""

LOOKING = frozenset({
    "_local_scalar_dense", "detach", "detach_", "lift_fresh", "lift", "alias", "set_", "resize_", "_unsafe_view",
    "is_same_size", "record_stream", "_has_compatible_shallow_copy_type", "is_pinned", "_reshape_alias",
})  # fmt: skip
"""Views in another dress, and reads of one element (these are counted apart)."""

ANNOTATING = frozenset({"_record_function_enter", "_record_function_enter_new", "_record_function_exit"})
"""Marks for a profiler; they touch no tensor."""

FREE = ALLOCATING | FILLING | MOVING | LOOKING | ANNOTATING


def is_allowed(name: str, by_task: tuple[str, ...]) -> bool:
    """Whether `name` may run; the task names its own operators as `add`, `aten.add` or `torch.add`."""
    return name in FREE or is_named(name, by_task)


def is_named(name: str, by_task: tuple[str, ...]) -> bool:
    """Whether the task names `name` itself, so that it may do the work."""
    named = {one.replace("::", ".").rsplit(".", 1)[-1].strip("_") for one in by_task}
    return name.strip("_") in named
