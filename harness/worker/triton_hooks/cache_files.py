"""Triton's folder of compiled kernels, for one process: trusts only reported kernels, and skips files that are never read."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import triton
from triton._C.libtriton import llvm
from triton.runtime.cache import FileCacheManager

from .versions import UNREAD_DUMPS

_trusted: set[str] = set()
"""Cache folders of kernels that were compiled ahead and have all their files."""


class OwnFiles(FileCacheManager):  # type: ignore[misc]
    """Writes files directly, without Triton's rename: each file is complete before any process reads it."""

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a kernel by name; `None`, so that Triton compiles it, unless a child reported the kernel."""
        group: dict[str, str] | None = super().get_group(filename) if self.key in _trusted else None
        return group

    def put(self, data: Any, filename: str, binary: bool = True) -> str:  # noqa: FBT001 -- Triton's signature
        """Write the file; returns its path."""
        path = Path(self._make_path(filename))
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)


def trust(kernel: str) -> None:
    """Let Triton read the cached files of the kernel with this hexadecimal hash; `ValueError` if it is no hash."""
    _trusted.add(base64.b32encode(bytes.fromhex(kernel)).decode().rstrip("="))


def install() -> None:
    """Replace Triton's cache manager. Call it once in a process, which then compiles for one candidate."""
    triton.knobs.cache.manager_class = OwnFiles
    for name in UNREAD_DUMPS:
        if hasattr(llvm, name):
            setattr(llvm, name, lambda *_: "")
