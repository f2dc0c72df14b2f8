"""What a compiler was asked for, as plain data, and how a clean process is asked for it again. Torch-free."""

from __future__ import annotations

from typing import Any

import msgspec

from .messages import Hello
from .records import (  # noqa: F401 -- msgspec resolves the parts of `Value` here
    Address,
    Constant,
    Constexpr,
    Descriptor,
    Dtype,
    Function,
    FunctionNotes,
    Items,
    Language,
    Reinterpreted,
    Value,
    View,
)


class Specialization(msgspec.Struct, frozen=True):
    """
    One specialization of a jit function: all that its binary depends on beside the source's text, the target and Triton.

    It is a hostile process's word: what it says is worth what a clean process compiles from it.
    """

    kernel: Function
    functions: tuple[FunctionNotes, ...]
    """The kernel and those that it calls."""
    signature: dict[str, Any]
    """Type of each parameter, in Triton's words; of a tuple, those of its parts."""
    constants: tuple[tuple[tuple[int, ...], Value], ...]
    """Compile-time constants by their place among the parameters, and within tuples."""
    attributes: tuple[tuple[tuple[int, ...], Any], ...]
    """What is promised of arguments, as that an address is a multiple of 16, likewise."""
    options: dict[str, Any]
    """Of the back end, as `num_warps`."""
    called: str
    """Name of the code where host code makes one (`repr=`); empty where it is the kernel's."""
    code_sha256: str
    """Of the code that was made of it, as `KernelResources` has it."""


class Recompile(msgspec.Struct, frozen=True, tag="recompile"):
    """Compile these from the source's text, in a process in which none of it runs."""

    nonce: str
    source: str
    file: str
    """Under which it lay when it was compiled first: what kernels assert names it."""
    target: str
    wanted: tuple[Specialization, ...]


class Recompiled(msgspec.Struct, frozen=True, tag="recompiled"):
    """The answer."""

    nonce: str
    codes: tuple[str, ...]
    """SHA-256 of each code, as `KernelResources.code_sha256`; empty where nothing was compiled."""
    failures: tuple[str, ...]
    """Why, in a line; empty where a code was made."""


RECOMPILE_REQUESTS: msgspec.msgpack.Decoder[Recompile] = msgspec.msgpack.Decoder(Recompile)
RECOMPILE_REPORTS: msgspec.msgpack.Decoder[Hello | Recompiled] = msgspec.msgpack.Decoder(Hello | Recompiled)
