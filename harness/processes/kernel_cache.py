"""The kernel cache: kernels that the compile stage of an evaluation made of a source, for the guest and the timers after it.

Without it every guest and timer compiles the same kernels again. The files come from a sandbox of one source and go only to
sandboxes of the same source, so a candidate can harm only itself. The compile stage of an exam replaces the files of the
attempt. Files must not carry messages from one process to the next: only names that Triton gives to kernels of the
source are kept, lists of files are written again, and all files have one date. A candidate's libraries are not kept, because a
process loads them before foreign code runs. Binaries that evaluations share are in `binaries`.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from harness.linux.foreign_files import read_regular

FOLDER = "triton"
"""Folder of compiled kernels in a process's scratch folder; its files lie two levels deep."""
MOST_BYTES = 64 << 20
MOST_FILES = 4096
MOST_SOURCES = 32
GROUP = "__grp__"
"""Prefix of the file that lists all files of a kernel; without it Triton compiles again."""
LIBRARY = ".so"
SUFFIXES = frozenset(("json", "source", "ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco"))
"""Suffixes of a kernel's files, NVIDIA and AMD (Triton 3.5 to 3.7)."""
MADE_S = 0
"""Date of every file that is written."""
_FOLDER_NAME = re.compile(r"[A-Z2-7]{52}")
"""A SHA-256 in base 32."""
_MOST_NAME = 150
"""Triton cuts a kernel's name to this length in the names of its files."""
_WORD = re.compile(r"\w+")
_SCRATCH = b"{scratch}"
"""Placeholder in kept files for the folder that they were made in."""


class KernelCache:
    """Compiled kernels by source; the least recently used go first. Blocks on files: not for an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Threads of two slots may use the cache at once."""
        self._kept: OrderedDict[bytes, dict[str, bytes]] = OrderedDict()
        """Content by file name, for each source."""

    def holds(self, source: str) -> bool:
        """True if kernels of this source are kept."""
        return _key(source) in self._kept

    def keep(self, source: str, scratch: Path, *, libraries: bool = False) -> None:
        """Replace what is kept by what a process compiled. Keeps nothing if it is over `MOST_BYTES` or `MOST_FILES`.

        Keeps complete kernels with a name that occurs in the source. `libraries` also keeps shared libraries and kernels of any
        name; only for a source that is no candidate.
        """
        files: dict[str, bytes] = {}
        size = 0
        for name, content in files_of(scratch / FOLDER):
            size += len(content)
            if size > MOST_BYTES or len(files) >= MOST_FILES:
                return
            files[name] = content
        kept = _kernels(files, None if libraries else _words(source))
        if libraries:
            kept |= {name: content for name, content in files.items() if name.endswith(LIBRARY)}
        files = {
            name: content.replace(str(scratch).encode(), _SCRATCH) if _names(name) else content
            for name, content in kept.items()
        }
        with self._lock:
            self._kept.pop(_key(source), None)
            if files:
                self._kept[_key(source)] = files
            while len(self._kept) > MOST_SOURCES:
                self._kept.popitem(last=False)

    def lay(self, source: str, scratch: Path) -> None:
        """Write the kept files into the scratch folder of a process in which no foreign code ran yet."""
        with self._lock:
            files = self._kept.get(_key(source))
            if files is None:
                return
            self._kept.move_to_end(_key(source))
        # On a full disk the missing kernels are compiled again. A list is written after the files that it names.
        with suppress(OSError):
            for name, content in files.items():
                put(
                    scratch,
                    name,
                    content.replace(_SCRATCH, str(scratch).encode()) if _names(name) else content,
                )


def _words(source: str) -> frozenset[str]:
    return frozenset(word[:_MOST_NAME] for word in _WORD.findall(source))


def _kernels(files: Mapping[str, bytes], names: Collection[str] | None) -> dict[str, bytes]:
    """Return the files of complete kernels, with new lists; only kernels named in `names`, unless that is `None`.

    A kernel may be incomplete because its process is ending while the files are read.
    """
    kept: dict[str, bytes] = {}
    for path, content in files.items():
        folder, _, file = path.partition("/")
        kernel = file.removeprefix(GROUP).removesuffix(".json")
        if file != f"{GROUP}{kernel}.json" or not _FOLDER_NAME.fullmatch(folder):
            continue
        if not kernel.isidentifier() or (names is not None and kernel not in names):
            continue
        children = _children(content)
        own = {f"{kernel}.{suffix}" for suffix in SUFFIXES}
        if (
            not children
            or not own.issuperset(children)
            or not all(f"{folder}/{child}" in files for child in children)
        ):
            continue
        kept |= {f"{folder}/{child}": files[f"{folder}/{child}"] for child in children}
        listed = {child: f"{_SCRATCH.decode()}/{FOLDER}/{folder}/{child}" for child in sorted(children)}
        kept[path] = msgspec.json.encode(_Group(listed))
    return kept


def _children(group: bytes) -> Collection[str]:
    """Return the files that a list names; none if a candidate wrote something else."""
    try:
        return msgspec.json.decode(group, type=_Group).child_paths
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


class _Group(msgspec.Struct):
    """The file in which Triton lists the files of a kernel."""

    child_paths: dict[str, str]


def put(scratch: Path, name: str, content: bytes) -> None:
    """Write one file into a process's folder of compiled kernels, unless it exists.

    The folders are open to all users, because the process may still change its user; `scratch` itself admits only its owner.
    """
    file = scratch / FOLDER / name
    if file.exists():
        return  # the process may have the file open, or mapped as code
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
        with suppress(PermissionError):  # the process made the folder itself, as another user
            os.utime(folder, (MADE_S, MADE_S))


def _names(file: str) -> bool:
    """True if the file contains the path of its folder."""
    return file.endswith(".json")


def _key(source: str) -> bytes:
    return hashlib.blake2b(source.encode()).digest()


def files_of(top: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of regular files two levels deep; nothing if the folder cannot be read.

    Files are opened through descriptors, since a process that still runs may replace a folder by a link.
    """
    # The folder may be missing, deleted, replaced by a link, or closed by foreign code.
    with suppress(OSError):
        for folder, deeper, names, descriptor in os.fwalk(top, follow_symlinks=False):
            inner = Path(folder).relative_to(top)
            if not inner.parts:
                continue
            deeper.clear()  # Triton writes no deeper folders
            for name in names:
                content = read_regular(name, MOST_BYTES, folder=descriptor)
                if content is not None:
                    yield f"{inner}/{name}", content
