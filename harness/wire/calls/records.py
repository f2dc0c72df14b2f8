"""The record of one call: a small program over memory, which a clean process can replay. Torch-free.

A record comes from the guest, so nothing in it is trusted; only the outputs of its replay count.
"""

from __future__ import annotations

from typing import TypeAlias, Union

import msgspec

LOWEST_ADDRESS = 1 << 32
"""Integers from here on may be addresses; smaller integers are numbers."""
MAX_STEPS = 16384
"""A record with more steps is not replayed."""


class View(msgspec.Struct, frozen=True, tag="view"):
    """A tensor: its place in a storage, offset and strides in elements."""

    storage: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Dtype(msgspec.Struct, frozen=True, tag="dtype"):
    """A torch dtype, by name."""

    name: str


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """A named constant of torch: a memory format such as `contiguous_format`, or a layout."""

    name: str


class Items(msgspec.Struct, frozen=True, tag="items"):
    """A tuple or list of values."""

    items: tuple[Value, ...]
    fields: tuple[str, ...] = ()


class Constexpr(msgspec.Struct, frozen=True, tag="constexpr"):
    """A value in `tl.constexpr`."""

    value: Value


class Language(msgspec.Struct, frozen=True, tag="language"):
    """A module of Triton's language or its member, such as `triton.language` and `math.exp`."""

    module: str
    member: str = ""


class Function(msgspec.Struct, frozen=True, tag="function"):
    """A `@triton.jit` function of the candidate's module, or a helper of another module of its package."""

    name: str
    line: int
    twin: int = 0
    """Number among the functions of this line whose names have different values, as a factory makes them."""
    module: str = ""
    """Name of the other module of the package; empty for the candidate's module."""


class Descriptor(msgspec.Struct, frozen=True, tag="descriptor"):
    """A tensor descriptor that the host made."""

    base: View
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str


class Reinterpreted(msgspec.Struct, frozen=True, tag="reinterpreted"):
    """The result of `triton.reinterpret`."""

    base: View
    dtype: str


class Address(msgspec.Struct, frozen=True, tag="address"):
    """An integer that is an address in a storage."""

    storage: int
    offset_bytes: int


Value: TypeAlias = Union[
    bool, int, float, str, "View", "Dtype", "Constant", "Items", "Constexpr", "Language", "Function", "Descriptor",
    "Reinterpreted", "Address", None,
]  # fmt: skip
"""Everything that an argument can be; `Items` and `Constexpr` hold values themselves."""


class Contents(msgspec.Struct, frozen=True, tag="contents"):
    """Memory that existed before the call: its bytes, or poison if `data` is `None`."""

    storage: int
    size_bytes: int
    data: bytes | None
    addresses: tuple[tuple[int, Address], ...] = ()


class Operator(msgspec.Struct, frozen=True, tag="operator"):
    """One tensor operator."""

    name: str
    """`add` for `aten::add`."""
    overload: str
    arguments: tuple[Value, ...]
    named: dict[str, Value]
    results: tuple[View, ...]
    line: int | None


class Launch(msgspec.Struct, frozen=True, tag="launch"):
    """One launch, with its chosen config and evaluated heuristics."""

    kernel: Function
    grid: tuple[int, int, int]
    arguments: dict[str, Value]
    options: dict[str, Value]
    """Launch options such as `num_warps`. A keyword that also names a parameter is in both dictionaries."""
    trial: bool = False
    """Made to tune the kernel, and made again for the call itself; its work counts once."""


class HostRead(msgspec.Struct, frozen=True, tag="host_read"):
    """Python read these elements; later steps may depend on them."""

    view: View
    digest: bytes


Step = Contents | Operator | Launch | HostRead


class FunctionNotes(msgspec.Struct, frozen=True):
    """What a replay needs of a jit function besides its source."""

    function: Function
    names: dict[str, Value]
    constexprs: tuple[str, ...]
    defaults: tuple[Value, ...]
    unspecialised: tuple[str, ...] = ()
    """Parameters that are not specialised for an argument of 1."""
    types: dict[str, str] = {}
    computes_constants: bool = False


class Record(msgspec.Struct, frozen=True):
    """One call of the entry point."""

    inputs: dict[str, int]
    steps: tuple[Step, ...]
    functions: tuple[FunctionNotes, ...]
    returned: tuple[View, ...]
    excess: str = ""
    """The limit that the call exceeded, so that the record ends there; empty if the record is complete."""


def trials(record: Record) -> frozenset[int]:
    """Return the indices of trial launches that a later, identical launch repeats."""
    repeated: set[int] = set()
    later: set[bytes] = set()
    if any(isinstance(step, Launch) and step.trial for step in record.steps):
        for index, step in reversed(list(enumerate(record.steps))):
            if isinstance(step, Launch):
                launch = msgspec.msgpack.encode(msgspec.structs.replace(step, trial=False))
                if not step.trial:
                    later.add(launch)
                elif launch in later:
                    repeated.add(index)
    return frozenset(repeated)


def fits(view: View, item_bytes: int, size_bytes: int) -> bool:
    """Return whether a view is inside a storage of `size_bytes`."""
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
