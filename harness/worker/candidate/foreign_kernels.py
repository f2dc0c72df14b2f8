"""Notes the launched kernels that another module than the candidate defines: the candidate's own kernels must do the work."""

from __future__ import annotations

from typing import Any

from harness.worker.triton_hooks.launches import Launch, handle_launches

from .loading import foreign_module


class ForeignKernels:
    """Kernels of other modules that were launched, in words. Call `watch` once, before the candidate's import."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def watch(self) -> None:
        """Note launches from now on; a kernel that is only compiled counts too, because `compiled[grid]` may launch it."""
        handle_launches(self._note)

    def take(self) -> tuple[str, ...]:
        """The kernels since the last `take`."""
        names, self._names = tuple(self._names), {}
        return names

    def _note(self, launch: Launch) -> Any:
        if name := foreign_kernel(launch.kernel, self._file):
            self._names[name] = None
        return launch.go_on()


def foreign_kernel(kernel: Any, file: str) -> str:
    """The kernel's name and module in words if its code is not in the candidate's file; else empty."""
    code = kernel.fn.__code__
    if code.co_filename == file:
        return ""
    return f"`{code.co_name}` of {foreign_module(code.co_filename) or kernel.fn.__module__}"
