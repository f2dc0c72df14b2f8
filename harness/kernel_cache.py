"""What Triton compiled of a source in one process, kept for the next process that holds the same source.

A process of its own for every compile stage, guest and timer would else compile the same kernels again, each. The files come
out of sandboxes where the source ran, and go into sandboxes where nothing else will run: whoever could plant something there
plants it for itself. Libraries of candidates are not taken: a process loads them before foreign code runs in it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

FOLDER = "triton"
"""Of the compiled kernels in a process's scratch folder, two levels deep."""
MOST_BYTES = 64 << 20
MOST_FILES = 4096
"""Of one source."""
MOST_SOURCES = 32
GROUP = "__grp__"
"""Begins the name of the file that names all files of a kernel: without it Triton compiles again."""
LIBRARY = ".so"
_SCRATCH = b"{scratch}"
"""In what is kept, where a file named the folder that it lay in."""


class KernelCache:
    """Compiled kernels by source, least recently used first out. Its methods read and write files: not for an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Two slots' threads may keep and lay at once."""
        self._kept: OrderedDict[bytes, dict[str, bytes]] = OrderedDict()
        """By source: files by name."""

    def holds(self, source: str) -> bool:
        """Whether anything of this source is kept."""
        return _key(source) in self._kept

    def keep(self, source: str, scratch: Path, *, libraries: bool = False) -> None:
        """Takes what a process compiled, beside what others did; more than `MOST_BYTES` or `MOST_FILES` are not worth it, and left.

        `libraries`: those too, of a source that is no candidate's.
        """
        files: dict[str, bytes] = {}
        size = 0
        for name, content in files_of(scratch / FOLDER):
            size += len(content)
            if size > MOST_BYTES or len(files) >= MOST_FILES:
                return
            if libraries or not name.endswith(LIBRARY):
                files[name] = content.replace(str(scratch).encode(), _SCRATCH) if _names(name) else content
        files = {name: content for name, content in files.items() if _is_whole(name, content, files)}
        with self._lock:
            if files:
                merged = self._kept.pop(_key(source), {}) | files
                fits = len(merged) <= MOST_FILES and sum(map(len, merged.values())) <= MOST_BYTES
                self._kept[_key(source)] = merged if fits else files
            while len(self._kept) > MOST_SOURCES:
                self._kept.popitem(last=False)

    def lay(self, source: str, scratch: Path) -> None:
        """Puts what is kept into the scratch folder of a process in which no foreign code ran yet."""
        with self._lock:
            found = self._kept.get(_key(source))
            if found is None:
                return
            self._kept.move_to_end(_key(source))
        for name, kept in found.items():
            content = kept.replace(_SCRATCH, str(scratch).encode()) if _names(name) else kept
            with suppress(OSError):  # a name that no file can have: what is not laid is compiled again
                put(scratch, name, content)


def _is_whole(name: str, content: bytes, files: Mapping[str, bytes]) -> bool:
    """Whether a kernel's group has all its files: those of a process that ends may be going while they are read."""
    folder, _, file = name.partition("/")
    if not file.startswith(GROUP):
        return True
    try:
        children = msgspec.json.decode(content, type=_Group).child_paths
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a candidate may have written it
        return False
    return all(f"{folder}/{child}" in files for child in children)


class _Group(msgspec.Struct):
    """Triton's own file of a kernel's files."""

    child_paths: dict[str, str]


def put(scratch: Path, name: str, content: bytes) -> None:
    """
    Into a process's folder of compiled kernels, where no such file stands.

    The process may not have become the user yet that it runs as, so its folders are open to all; nobody else gets into
    `scratch`, which is its owner's alone.
    """
    file = scratch / FOLDER / name
    if file.exists():
        return  # the process may have it open, or mapped as code
    for folder in (file.parent.parent, file.parent):
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o777)
    written = file.with_name("laid")
    written.write_bytes(content)
    written.chmod(0o644)
    written.rename(file)


def _names(file: str) -> bool:
    """Whether the file names the folder that it lies in."""
    return file.endswith(".json")


def _key(source: str) -> bytes:
    return hashlib.blake2b(source.encode()).digest()


def files_of(top: Path) -> Iterator[tuple[str, bytes]]:
    """Plain files two levels down, by descriptors: what runs there still may swap a folder for a link. None where none can be read."""
    # Nothing was compiled; or the process ends and its folder goes; or foreign code made a link of the folder, or shut it.
    with suppress(OSError):
        for folder, deeper, names, descriptor in os.fwalk(top, follow_symlinks=False):
            inner = Path(folder).relative_to(top)
            if not inner.parts:
                continue
            deeper.clear()  # what lies there is not Triton's
            for name in names:
                content = _read(name, descriptor)
                if content is not None:
                    yield f"{inner}/{name}", content


def _read(name: str, folder: int) -> bytes | None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_BYTES:
            return None
        return opened.read(MOST_BYTES)
