"""Protects the removal of a candidate's folder: deep nesting, links, pipes, and no leaked descriptors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.linux.foreign_files import remove

DEEP = 3000
"""Nested folders, beyond Python's recursion limit and the limit of a path's length."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    scratch = tmp_path / "wavedeck-guest-1"
    scratch.mkdir()
    yield scratch
    remove(scratch)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def nest(folder: Path, count: int) -> None:
    """Makes `count` nested folders with a file in the innermost folder."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("deeper", dir_fd=at)
        below = os.open("deeper", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


@pytest.mark.soak
def test_deeply_nested_folders_are_removed(folder: Path) -> None:
    nest(folder, DEEP)
    nest(folder / "deeper", 0)
    (folder / "deeper" / "beside").mkdir()
    before = descriptors()
    remove(folder)
    assert not folder.exists()
    assert descriptors() == before


def test_links_are_removed_but_not_their_targets(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o755)
    (kept / "file").touch()
    for place in (folder, folder / "below"):
        place.mkdir(exist_ok=True)
        (place / "link").symlink_to(kept)
        (place / "none").symlink_to("none")
        os.mkfifo(place / "pipe")
    remove(folder)
    assert not folder.exists()
    assert (kept / "file").exists()
    assert kept.stat().st_mode & 0o777 == 0o755
