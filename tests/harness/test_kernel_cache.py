"""Compiled kernels that go from one sandbox's folder to another's."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from harness.processes import kernel_cache
from harness.processes.kernel_cache import FOLDER, KernelCache

SOURCE = "def kernel(): ..."
KEY, OTHER = "K" * 52, "O" * 52
"""Folders of kernels, as long as Triton's."""


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A scratch folder in which a process compiled one kernel, as Triton leaves it."""
    folder = tmp_path / "first" / FOLDER / KEY
    folder.mkdir(parents=True)
    (folder / "kernel.cubin").write_bytes(b"\x7fELF" + str(tmp_path / "first").encode())
    group = {"child_paths": {"kernel.cubin": str(folder / "kernel.cubin")}}
    (folder / "__grp__kernel.json").write_text(json.dumps(group), encoding="utf-8")
    return tmp_path / "first"


def laid(cache: KernelCache, scratch: Path, source: str = SOURCE) -> dict[str, bytes]:
    scratch.mkdir(exist_ok=True)
    cache.lay(source, scratch)
    found = (file for file in (scratch / FOLDER).rglob("*") if file.is_file())
    return {str(file.relative_to(scratch / FOLDER)): file.read_bytes() for file in found}


def test_kernels_are_found_where_the_next_process_looks(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    second = tmp_path / "second"
    files = laid(cache, second)
    group = json.loads(files[f"{KEY}/__grp__kernel.json"])
    assert group["child_paths"] == {"kernel.cubin": str(second / FOLDER / KEY / "kernel.cubin")}
    assert files[f"{KEY}/kernel.cubin"] == (compiled / FOLDER / KEY / "kernel.cubin").read_bytes()


def test_whoever_the_next_process_becomes_may_read_and_add(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    before = os.umask(0o077)
    try:
        laid(cache, tmp_path / "second")
    finally:
        os.umask(before)
    top = tmp_path / "second" / FOLDER
    assert [stat.S_IMODE(one.stat().st_mode) for one in (top, top / KEY)] == [0o777, 0o777]
    assert {stat.S_IMODE(one.stat().st_mode) for one in (top / KEY).iterdir()} == {0o644}


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        (KEY, "t1795293600"),
        (KEY, "kernel.t1795293600"),
        (KEY, "__grp__t1795293600.json"),
        (OTHER, "kernel.json"),
        ("t1795293600", "kernel.cubin"),
    ],
    ids=["a file", "a suffix", "a list", "no list", "a folder"],
)
def test_a_candidate_leaves_no_names_to_the_next_process(
    compiled: Path, tmp_path: Path, folder: str, file: str
) -> None:
    """One that is judged would leave the time, so that one that is timed knows which look it is in."""
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    honest = laid(cache, tmp_path / "second")
    (compiled / FOLDER / folder).mkdir(exist_ok=True)
    (compiled / FOLDER / folder / file).write_bytes(b"now")
    cache.keep(SOURCE, compiled)
    assert laid(cache, tmp_path / "third").keys() == honest.keys()


def test_libraries_of_a_candidate_stay_where_they_are(compiled: Path, tmp_path: Path) -> None:
    (compiled / FOLDER / KEY / "cuda_utils.cpython-312-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert not any(name.endswith(".so") for name in laid(cache, tmp_path / "second"))
    cache.keep("baseline", compiled, libraries=True)
    assert any(name.endswith(".so") for name in laid(cache, tmp_path / "third", "baseline"))


def test_another_source_gets_nothing(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert laid(cache, tmp_path / "second", "import torch") == {}


def test_links_and_pipes_are_not_followed(compiled: Path, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-secret", encoding="utf-8")
    (compiled / FOLDER / KEY / "link").symlink_to(secret)
    (compiled / FOLDER / OTHER).symlink_to(tmp_path)
    os.mkfifo(compiled / FOLDER / KEY / "pipe")
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    files = laid(cache, tmp_path / "second")
    assert set(files) == {f"{KEY}/kernel.cubin", f"{KEY}/__grp__kernel.json"}


def test_the_least_recently_used_source_goes_first(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    for number in range(kernel_cache.MOST_SOURCES):
        cache.keep(f"{SOURCE}\n{number}", compiled)
    laid(cache, tmp_path / "second", f"{SOURCE}\n0")
    cache.keep(SOURCE, compiled)
    assert cache.holds(f"{SOURCE}\n0")
    assert not cache.holds(f"{SOURCE}\n1")
