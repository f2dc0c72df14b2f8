"""What the compiling worker says of one candidate and target. Torch-free."""

from __future__ import annotations

import msgspec

from .evaluation import KernelResources


class HostWorkFound(msgspec.Struct, frozen=True):
    """A call at `gpu` sizes that did not leave the work to kernels."""

    case: str
    operator: str = ""
    """That computed on the host; empty where no kernel was launched at all."""
    line: int | None = None
    reads: bool = False
    """Python read tensors' elements in that call, which are none of a case's here."""


class CompileReport(msgspec.Struct, frozen=True):
    """What compiling said. At most one of `error` and `unsupported` is set."""

    resources: tuple[KernelResources, ...] = ()
    """One for each distinct binary and config, in order of launching; configs that do not compile or fit included."""
    error: str | None = None
    """Why the candidate would fail on the target, in a few lines."""
    line: int | None = None
    """The candidate's own line, 1-based."""
    unsupported: str | None = None
    """Why nothing can be said for this target; says nothing of the candidate."""
    notes: tuple[str, ...] = ()
    patched: str = ""
    """What of Triton, or of the settings that its compiler heeds, the candidate changed; nothing was compiled from then on."""
    host_work: HostWorkFound | None = None
    """Of the first case in which the host did the kernels' work at `gpu` sizes."""
    argument_types: tuple[tuple[str, ...], ...] = ()
    """Of the kernels, each sequence once, where all are plain."""
