"""What Triton compiled of a source in one process, kept for the next process that holds the same source.

A process of its own for every compile stage, guest and timer would else compile the same kernels again, each. The files come
out of sandboxes where the source ran, and go into sandboxes where nothing else will run: whoever could plant something there
plants it for itself. Nor may they carry news from one process to the next: names are Triton's alone, of kernels that the source
names, lists of files are written anew, and no file tells when it was made. Libraries of candidates are not taken: a process loads
them before foreign code runs in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

FOLDER = "triton"
"""Of the compiled kernels in a process's scratch folder, two levels deep."""
MOST_BYTES = 64 << 20
MOST_FILES = 4096
MOST_SOURCES = 32
GROUP = "__grp__"
"""Begins the name of the file that names all files of a kernel: without it Triton compiles again."""
LIBRARY = ".so"
SUFFIXES = frozenset(("json", "source", "ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco"))
"""Of the files of a kernel, on both makers' GPUs (Triton 3.6 and 3.7)."""
MADE_S = 0
"""When all that is laid was made, as far as it tells."""
_FOLDER_NAME = re.compile(r"[A-Z2-7]{52}")
"""A SHA-256 in base 32."""
_MOST_NAME = 150
"""Characters of a kernel's name that Triton puts into those of its files."""
_WORD = re.compile(r"\w+")
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

        Only files of whole kernels, whose names stand in the source; `libraries`: those too, and kernels of any name, of a source that
        is no candidate's.
        """
        files: dict[str, bytes] = {}
        size = 0
        for name, content in files_of(scratch / FOLDER):
            size += len(content)
            if size > MOST_BYTES or len(files) >= MOST_FILES:
                return
            files[name] = content
        found = _kernels(files, None if libraries else _words(source))
        if libraries:
            found |= {name: content for name, content in files.items() if name.endswith(LIBRARY)}
        files = {
            name: content.replace(str(scratch).encode(), _SCRATCH) if _names(name) else content
            for name, content in found.items()
        }
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
        # A full disk, say: what is not laid is compiled again, and lists are laid behind what they name.
        with suppress(OSError):
            for name, kept in found.items():
                put(scratch, name, kept.replace(_SCRATCH, str(scratch).encode()) if _names(name) else kept)


def _words(source: str) -> frozenset[str]:
    return frozenset(word[:_MOST_NAME] for word in _WORD.findall(source))


def _kernels(files: Mapping[str, bytes], known: Collection[str] | None) -> dict[str, bytes]:
    """The files of whole kernels, of these names where names are `known`, and their lists, each written anew.

    A kernel's files may be going while they are read: those of a process that ends.
    """
    kept: dict[str, bytes] = {}
    for path, content in files.items():
        folder, _, file = path.partition("/")
        kernel = file.removeprefix(GROUP).removesuffix(".json")
        if file != f"{GROUP}{kernel}.json" or not _FOLDER_NAME.fullmatch(folder):
            continue
        if not kernel.isidentifier() or (known is not None and kernel not in known):
            continue
        children = _children(content)
        own = {f"{kernel}.{suffix}" for suffix in SUFFIXES}
        if (
            not children
            or not own.issuperset(children)
            or not all(f"{folder}/{one}" in files for one in children)
        ):
            continue
        kept |= {f"{folder}/{one}": files[f"{folder}/{one}"] for one in children}
        listed = {one: f"{_SCRATCH.decode()}/{FOLDER}/{folder}/{one}" for one in sorted(children)}
        kept[path] = msgspec.json.encode(_Group(listed))
    return kept


def _children(group: bytes) -> Collection[str]:
    """The files that a list names; none where a candidate wrote something else."""
    try:
        return msgspec.json.decode(group, type=_Group).child_paths
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


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
    os.utime(written, (MADE_S, MADE_S))
    written.rename(file)
    for folder in (file.parent, file.parent.parent):
        with suppress(PermissionError):  # the process made it itself, by now as another user: it knows when
            os.utime(folder, (MADE_S, MADE_S))


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
