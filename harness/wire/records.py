"""The record of one call: a little program over memory, which a clean process can run again. Torch-free.

A record comes from the guest, so nothing in it is believed: what it says is only worth what its replay gives.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

LOWEST_ADDRESS = 1 << 32
"""Integers from here on may be addresses; those below are numbers."""
MAX_STEPS = 16384
"""Of one call; a longer record is not replayed."""


class View(msgspec.Struct, frozen=True, tag="view"):
    """A tensor: where it lies in which storage."""

    storage: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    """In elements."""


class Dtype(msgspec.Struct, frozen=True, tag="dtype"):
    """A torch dtype, by name."""

    name: str


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """A named constant of torch (a memory format or a layout), as `contiguous_format`."""

    name: str


class Items(msgspec.Struct, frozen=True, tag="items"):
    """A tuple or list of values."""

    items: tuple[Value, ...]
    fields: tuple[str, ...] = ()


class Constexpr(msgspec.Struct, frozen=True, tag="constexpr"):
    """A value in `tl.constexpr`."""

    value: Value


class Language(msgspec.Struct, frozen=True, tag="language"):
    """A module or a member of Triton's language, as `triton.language` `math.exp`."""

    module: str
    member: str = ""


class Function(msgspec.Struct, frozen=True, tag="function"):
    """A `@triton.jit` function of the candidate's module."""

    name: str
    line: int
    """Of its first decorator, or of `def`."""
    twin: int = 0
    """Counts the functions of one place that differ in what they name, as those that a factory makes."""


class Descriptor(msgspec.Struct, frozen=True, tag="descriptor"):
    """A tensor descriptor that the host made."""

    base: View
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str


class Reinterpreted(msgspec.Struct, frozen=True, tag="reinterpreted"):
    """What `triton.reinterpret` gives."""

    base: View
    dtype: str


class Address(msgspec.Struct, frozen=True, tag="address"):
    """An integer that is an address in a storage."""

    storage: int
    offset_bytes: int


Value: TypeAlias = (
    "bool | int | float | str | View | Dtype | Constant | Items | Constexpr | Language | Function"
    " | Descriptor | Reinterpreted | Address | None"
)
"""What an argument can be; `Items` and `Constexpr` hold values again."""


class Contents(msgspec.Struct, frozen=True, tag="contents"):
    """Memory that was there before the call: its bytes, or poison where there are none."""

    storage: int
    size_bytes: int
    data: bytes | None
    addresses: tuple[tuple[int, Address], ...] = ()
    """Places (in bytes) that hold the address of other memory."""


class Operator(msgspec.Struct, frozen=True, tag="operator"):
    """One tensor operator."""

    name: str
    """As `aten::add`, without the prefix."""
    overload: str
    arguments: tuple[Value, ...]
    named: dict[str, Value]
    results: tuple[View, ...]
    line: int | None


class Launch(msgspec.Struct, frozen=True, tag="launch"):
    """One launch, configuration chosen and heuristics evaluated."""

    kernel: Function
    grid: tuple[int, int, int]
    arguments: dict[str, Value]
    options: dict[str, Value]
    """As `num_warps`; a keyword that is a parameter's name too stands in both, as it counts for both."""
    trial: bool = False
    """Made to tune the kernel, and made over for the call itself: its work is not counted twice."""


class HostRead(msgspec.Struct, frozen=True, tag="host_read"):
    """Python read these elements; what follows may depend on them."""

    view: View
    digest: bytes


Step = Contents | Operator | Launch | HostRead


class FunctionNotes(msgspec.Struct, frozen=True):
    """What a jit function needs beside its text."""

    function: Function
    names: dict[str, Value]
    """Values of the names that it uses and does not define."""
    constexprs: tuple[str, ...]
    """Parameters that are compile-time constants."""
    defaults: tuple[Value, ...]
    unspecialised: tuple[str, ...] = ()
    """Parameters that an argument of one makes no constant of."""
    types: dict[str, str] = {}
    """Of parameters whose annotation fixes it, as `i8` and `*fp16`."""
    computes_constants: bool = False
    """It is a `@triton.constexpr_function`, which runs while a kernel is compiled."""


class Record(msgspec.Struct, frozen=True):
    """One call of the entry point."""

    inputs: dict[str, int]
    steps: tuple[Step, ...]
    functions: tuple[FunctionNotes, ...]
    returned: tuple[View, ...]
    excess: str = ""
    """What the call did more of than a record holds, so that the record ends there; empty when it is whole."""


def trials(record: Record) -> frozenset[int]:
    """Places of the steps that are made over by a later one: launches that say so and are told to be the very same."""
    found: set[int] = set()
    later: set[bytes] = set()
    if any(isinstance(step, Launch) and step.trial for step in record.steps):
        for at, step in reversed(list(enumerate(record.steps))):
            if isinstance(step, Launch):
                what = msgspec.msgpack.encode(msgspec.structs.replace(step, trial=False))
                if not step.trial:
                    later.add(what)
                elif what in later:
                    found.add(at)
    return frozenset(found)


def fits(view: View, item_bytes: int, size_bytes: int) -> bool:
    """Whether a view lies inside a storage of `size_bytes`."""
    if len(view.shape) != len(view.strides) or view.offset < 0:
        return False
    if any(size < 0 for size in view.shape) or any(stride < 0 for stride in view.strides):
        return False
    if 0 in view.shape:
        return True
    last = view.offset + sum(
        (size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)
    )
    return (last + 1) * item_bytes <= size_bytes
