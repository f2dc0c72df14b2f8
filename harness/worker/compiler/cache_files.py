"""What compiling leaves out here: files that nobody reads, and care for other processes' files where none but our own write."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import triton
from triton._C.libtriton import llvm
from triton.runtime.cache import FileCacheManager

_DUMPS = ("translate_to_mir", "dump_sched_dag")
"""AMD's back end of Triton 3.6 asks for both of each kernel and drops what they give unless it was told to write it to a file."""


_trusted: set[str] = set()
"""Folders of kernels that were compiled ahead, all of whose files are there."""


class OwnFiles(FileCacheManager):  # type: ignore[misc]
    """Triton's folder of compiled kernels, each written before anybody reads it: no renaming of finished files into place."""

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a kernel by name; `None`, and it is compiled, where its log was not told of."""
        found: dict[str, str] | None = super().get_group(filename) if self.key in _trusted else None
        return found

    def put(self, data: Any, filename: str, binary: bool = True) -> str:  # noqa: FBT001 -- as Triton's
        """The path of the file that now holds `data`."""
        path = Path(self._make_path(filename))
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)


def trust(kernel: str) -> None:
    """The files of the kernel with this hash, in hexadecimal digits, are read from now on; `ValueError` where it is no hash."""
    _trusted.add(base64.b32encode(bytes.fromhex(kernel)).decode().rstrip("="))


def install() -> None:
    """Once a process that compiles for one candidate."""
    triton.knobs.cache.manager_class = OwnFiles
    for name in _DUMPS:
        if hasattr(llvm, name):
            setattr(llvm, name, lambda *_: "")
