"""What compiling leaves out here: files that nobody reads, and care for other processes' files where there is one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import triton
from triton._C.libtriton import llvm
from triton.runtime.cache import FileCacheManager

_DUMPS = ("translate_to_mir", "dump_sched_dag")
"""AMD's back end of Triton 3.6 asks for both of each kernel and drops what they give unless it was told to write it to a file."""


class OwnFiles(FileCacheManager):  # type: ignore[misc]
    """Triton's folder of compiled kernels, where one process writes and reads: no renaming of finished files into place."""

    def put(self, data: Any, filename: str, binary: bool = True) -> str:  # noqa: FBT001 -- as Triton's
        """The path of the file that now holds `data`."""
        path = Path(self._make_path(filename))
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)


def install() -> None:
    """Once a process that compiles for one candidate."""
    triton.knobs.cache.manager_class = OwnFiles
    for name in _DUMPS:
        if hasattr(llvm, name):
            setattr(llvm, name, lambda *_: "")
