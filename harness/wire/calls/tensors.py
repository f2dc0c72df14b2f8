"""Tensors and arguments as plain data, in the one form that every process reads. Torch-free."""

from __future__ import annotations

import msgspec

INPUTS = -1
"""Number of the storage that holds all inputs of a call; storages that the call allocated count from 0."""


class TensorSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor: dtype and layout, and its values or their place where the receiver needs them."""

    dtype: str
    """Name of a torch dtype."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    data: bytes = b""
    """From the first element to the last, gaps of the strides included; empty if the values are not sent."""
    offset: int = 0
    """Elements of the storage before the tensor's first one."""
    storage: int = INPUTS
    """Number of the storage in a launch tape."""
    offset_bytes: int = 0
    """Place of the storage in the arena."""
    storage_bytes: int = 0
    """Bytes of the storage in the arena; 0 if the tensor has no elements."""
    tail_bytes: int = 0
    """Bytes of the storage behind the tensor's last element."""

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


Scalar = bool | int | float | str | None
Arguments = dict[str, TensorSpec | Scalar]
"""The arguments of a call by name, in order: tensors and scalars."""


CaseSpecs = dict[str, Arguments]
"""Arguments by case, at the sizes for which its launches are compiled; tensors have no values."""
NO_CASES = msgspec.Raw(msgspec.msgpack.encode({}))
"""`CaseSpecs` of no case, as it is sent."""
CASE_SPECS: msgspec.msgpack.Decoder[CaseSpecs] = msgspec.msgpack.Decoder(CaseSpecs)
