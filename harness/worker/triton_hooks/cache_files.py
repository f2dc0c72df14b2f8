"""Triton's folder of compiled kernels, for a process that compiles: holds what `lookup` gives, and no file that is never read."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import triton
from triton._C.libtriton import llvm
from triton.runtime.cache import FileCacheManager

from .versions import UNREAD_DUMPS

Lookup = Callable[[str], Mapping[str, bytes]]
"""Returns the files of the kernel with this hexadecimal hash by suffix; none, so that Triton compiles it."""
lookup: Lookup = lambda _: {}  # noqa: E731


class OwnFiles(FileCacheManager):  # type: ignore[misc]
    """Writes files directly, without Triton's rename: other processes read them after this one compiled."""

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a kernel by name. What lies in the folder counts nothing: the candidate may have written it."""
        kernel = filename.removesuffix(".json")
        files = lookup(base64.b32decode(self.key + "====").hex())
        group = {
            f"{kernel}.{suffix}": self.put(content, f"{kernel}.{suffix}") for suffix, content in files.items()
        }
        if group:
            self.put_group(filename, group)
        return group or None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:  # noqa: FBT001 -- Triton's signature
        """Write the file; returns its path."""
        path = Path(self._make_path(filename))
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)


def install() -> None:
    """Replace Triton's cache manager. Call it once in a process, which then compiles for one candidate."""
    triton.knobs.cache.manager_class = OwnFiles
    skip_unread_dumps()


def skip_unread_dumps() -> None:
    """Replace functions of LLVM that only write dumps."""
    for name in UNREAD_DUMPS:
        if hasattr(llvm, name):
            setattr(llvm, name, lambda *_: "")
