"""Folders of candidates go, whatever was put into them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.linux.folder_removal import remove

DEEP = 3000
"""Folders: more than Python calls itself, and than a path may name."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "wavedeck-guest-1"
    found.mkdir()
    yield found
    remove(found)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def nest(folder: Path, count: int) -> None:
    """As many folders in each other, a file in the last."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("deeper", dir_fd=at)
        below = os.open("deeper", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


def test_folders_in_folders_go_however_many(folder: Path) -> None:
    nest(folder, DEEP)
    nest(folder / "deeper", 0)
    (folder / "deeper" / "beside").mkdir()
    before = descriptors()
    remove(folder)
    assert not folder.exists()
    assert descriptors() == before


def test_links_go_and_what_they_point_to_stays(folder: Path, tmp_path: Path) -> None:
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
