"""Reads a repository's refs from its files: without a git process, and with the refs that git skips as damaged.

Without the files `HEAD`, `refs` and `objects`, git does not recognize a folder as a repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sessions.errors import StoreBroken, StoreDamaged
from sessions.files import write_whole

PACKED = "packed-refs"
_SHA = re.compile(rb"[0-9a-f]{40}")
_PACKED_LINE = re.compile(rb"([0-9a-f]{40}) (refs/\S+)")
HEAD = "refs/heads/accepted"
"""The branch that `HEAD` names in every store."""
_HEAD_CONTENT = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40})\s*")


class Refs(NamedTuple):
    """The branches of a repository."""

    commits: dict[str, str]
    """Id of the commit of each ref."""
    damaged: frozenset[str]
    """Branches whose file has no id, and `packed-refs` if a line of it cannot be read."""


def read_refs(git_dir: Path, folder: str = "refs/heads") -> Refs:
    """Returns all refs below a folder, without symbolic ones."""
    commits: dict[str, str] = {}
    damaged: set[str] = set()
    # In this order: git writes `packed-refs` before it removes the packed ref files.
    for ref in _ref_files(git_dir, folder):
        with suppress(FileNotFoundError):
            content = _read(git_dir / ref)
            if content.startswith(b"ref: "):
                continue
            sha = _sha_of(content)
            if sha is None:
                damaged.add(ref)
            else:
                commits[ref] = sha
    packed, unreadable = read_packed(git_dir)
    if unreadable:
        damaged.add(PACKED)
    for ref, sha in packed.items():
        if ref not in damaged and ref.startswith(f"{folder}/"):
            commits.setdefault(ref, sha)
    return Refs(commits, frozenset(damaged))


def read_ref(git_dir: Path, ref: str) -> str | None:
    """Returns the commit of a ref of this repository; `None` if there is none, or if its file is damaged."""
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _sha_of(_read(git_dir / ref))
    return read_packed(git_dir)[0].get(ref)


def read_packed(git_dir: Path) -> tuple[dict[str, str], list[bytes]]:
    """Returns the refs in `packed-refs`, and its lines that cannot be read."""
    try:
        content = (git_dir / PACKED).read_bytes()
    except OSError:
        return {}, []
    # Git writes at least a header, and ends each line.
    *lines, rest = content.split(b"\n")
    commits: dict[str, str] = {}
    unreadable: list[bytes] = []
    for line in lines:
        match = _PACKED_LINE.fullmatch(line)
        if match:
            commits[match[2].decode(errors="surrogateescape")] = match[1].decode()
        elif not line.startswith((b"#", b"^")):
            unreadable.append(line)
    if rest or not lines:
        unreadable.append(rest)
    return commits, unreadable


def _ref_files(git_dir: Path, top: str) -> Iterator[str]:
    for folder, _, names in os.walk(git_dir / top):
        for name in names:
            if not name.endswith(".lock"):
                yield (Path(folder) / name).relative_to(git_dir).as_posix()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except PermissionError:
        return b""


def _sha_of(content: bytes) -> str | None:
    words = content.split(maxsplit=1)
    return words[0].decode() if words and _SHA.fullmatch(words[0]) else None


def check_skeleton(path: Path) -> None:
    """Raise `StoreDamaged` if the bare repository at `path` lacks `HEAD` or `refs`.

    Raises `StoreBroken` if the folder cannot be read. A folder without objects is not a damaged repository.
    """
    try:
        names = {entry.name for entry in path.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreBroken(f"the store {path} cannot be read ({error.strerror}); check its owner") from error
    if "objects" not in names:
        return
    if not (path / "refs").is_dir():
        raise StoreDamaged(f"the store's folder {path / 'refs'} is lost")
    head = path / "HEAD"
    try:
        content = head.read_bytes()
    except OSError as error:
        raise StoreDamaged(f"the store's file {head} cannot be read ({error.strerror})") from error
    if not _HEAD_CONTENT.fullmatch(content):
        raise StoreDamaged(f"the store's file {head} is {'damaged' if content.strip() else 'empty'}")


def mend_skeleton(path: Path) -> None:
    """Write `HEAD` as in a new store, and make `refs`; branches and objects stay as they are."""
    (path / "refs").mkdir(mode=0o700, exist_ok=True)
    write_whole(path / "HEAD", f"ref: {HEAD}\n".encode())
