"""Facts from the first call of a kernel and of its reference."""

from __future__ import annotations

import msgspec


class OutputSeen(msgspec.Struct, frozen=True):
    """A tensor that a call returned or changed."""

    dtype: str
    shape: tuple[int, ...]
    input: str = ""
    """Name of the input that the call changed; empty for a new tensor."""
    is_returned: bool = True


class CallSeen(msgspec.Struct, frozen=True):
    """One call."""

    outputs: tuple[OutputSeen, ...] = ()
    """New tensors and changed inputs: returned ones first, in their order."""
    plain: dict[int, bool | int | float | None] = {}
    """Parts of the returned tuple that are no tensors, by their places."""
    error: str = ""
    """The exception of the call, in one line."""
    is_imported: bool = True
    """The exception came from the call, not from the import of its file."""


class FirstCallSeen(msgspec.Struct, frozen=True, tag="first_call_seen"):
    """Facts from one call of a kernel, and of its reference with the same inputs, at small sizes."""

    inputs_error: str = ""
    """Why the inputs could not be made."""
    kernel: CallSeen = CallSeen()
    reference: CallSeen | None = None
    launched: tuple[str, ...] = ()
    """Kernels that the call launched."""
    operators: tuple[str, ...] = ()
    """Tensor operators that the call used outside of kernels."""
    is_outside: bool = False
    """A kernel accessed memory outside of its tensors."""
    seconds: float = 0.0


class ValueSeen(msgspec.Struct, frozen=True):
    """One value that `get_inputs()` returned."""

    name: str
    """Its key; empty if the values came as a list."""
    dtype: str = ""
    """Empty for a value that is no tensor."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 0.0
    scalar: bool | int | float | str | None = None


class InputsSeen(msgspec.Struct, frozen=True, tag="inputs_seen"):
    """The values that `get_inputs()` of a file returned."""

    values: tuple[ValueSeen, ...] = ()
    error: str = ""
