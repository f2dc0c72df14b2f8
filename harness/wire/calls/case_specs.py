"""The arguments of a case by shape and dtype, without values, for compiler and runs at `gpu` sizes. Torch-free."""

from __future__ import annotations

import msgspec


class ArgumentSpec(msgspec.Struct, frozen=True):
    """One argument of the entry point: a tensor by shape, strides and dtype, or a scalar."""

    name: str
    shape: tuple[int, ...] | None = None
    """`None` for a scalar."""
    strides: tuple[int, ...] = ()
    """In elements."""
    dtype: str = ""
    """Name of a torch dtype."""
    scalar: bool | int | float | str | None = None


class CaseSpec(msgspec.Struct, frozen=True):
    """The arguments of one case at the sizes for which its launches are compiled."""

    case: str
    arguments: tuple[ArgumentSpec, ...]

    @property
    def empty(self) -> bool:
        """True if a tensor has no element, so that a kernel may have nothing to do."""
        return any(argument.shape is not None and 0 in argument.shape for argument in self.arguments)


CASE_SPECS: msgspec.msgpack.Decoder[tuple[CaseSpec, ...]] = msgspec.msgpack.Decoder(tuple[CaseSpec, ...])
