"""Compiled kernels that go from one sandbox's folder to another's."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from harness import kernel_cache
from harness.kernel_cache import FOLDER, KernelCache

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


def test_a_kernel_that_lacks_a_file_is_compiled_again(compiled: Path, tmp_path: Path) -> None:
    (compiled / FOLDER / KEY / "kernel.cubin").unlink()
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert laid(cache, tmp_path / "second") == {}


@pytest.mark.parametrize(
    "group", [b"[" * 100_000, b'{"child_paths": {"\xff": ""}}', b"{}"], ids=["deep", "no text", "empty"]
)
def test_a_list_of_files_that_triton_did_not_write_is_left(
    compiled: Path, tmp_path: Path, group: bytes
) -> None:
    (compiled / FOLDER / KEY / "__grp__kernel.json").write_bytes(group)
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert laid(cache, tmp_path / "second") == {}


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


@pytest.mark.parametrize(
    ("kernel", "child", "folder"),
    [
        ("t1795293600", "t1795293600.json", KEY),
        ("kernel", "kernel.t1795293600", KEY),
        ("kernel", "kernel.json", "T1"),
    ],
    ids=["a kernel that the source does not name", "a suffix", "a folder"],
)
def test_nor_does_one_that_writes_lists_itself(tmp_path: Path, kernel: str, child: str, folder: str) -> None:
    top = tmp_path / "first" / FOLDER / folder
    top.mkdir(parents=True)
    (top / child).write_bytes(b"now")
    group = json.dumps({"child_paths": {child: str(top / child)}})
    (top / f"__grp__{kernel}.json").write_text(group, encoding="utf-8")
    cache = KernelCache()
    cache.keep(SOURCE, tmp_path / "first")
    assert not cache.holds(SOURCE)


def test_lists_are_written_anew_and_nothing_tells_when_it_was_made(compiled: Path, tmp_path: Path) -> None:
    list_of_files = compiled / FOLDER / KEY / "__grp__kernel.json"
    group = json.loads(list_of_files.read_bytes()) | {"at": 1795293600}
    group["child_paths"]["kernel.cubin"] += "/1795293600"
    list_of_files.write_text(json.dumps(group), encoding="utf-8")
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    files = laid(cache, tmp_path / "second")
    assert b"1795293600" not in files[f"{KEY}/__grp__kernel.json"]
    top = tmp_path / "second" / FOLDER
    assert {one.stat().st_mtime for one in (top, *top.rglob("*"))} == {kernel_cache.MADE_S}


def test_a_folder_that_goes_while_it_is_read_is_no_error(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = os.fwalk

    def going(top: Path, **options: Any) -> Any:
        shutil.rmtree(compiled)
        return walk(top, **options)

    monkeypatch.setattr(os, "fwalk", going)
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert not cache.holds(SOURCE)


def test_a_folder_that_a_candidate_made_a_link_of_is_no_error(tmp_path: Path) -> None:
    (tmp_path / FOLDER).symlink_to(FOLDER)
    cache = KernelCache()
    cache.keep(SOURCE, tmp_path)
    assert not cache.holds(SOURCE)


def test_libraries_of_a_candidate_stay_where_they_are(compiled: Path, tmp_path: Path) -> None:
    (compiled / FOLDER / KEY / "cuda_utils.cpython-312-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert not any(name.endswith(".so") for name in laid(cache, tmp_path / "second"))
    cache.keep("baseline", compiled, libraries=True)
    assert any(name.endswith(".so") for name in laid(cache, tmp_path / "third", "baseline"))


def test_what_two_processes_compiled_of_a_source_is_kept_together(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    other = tmp_path / "other" / FOLDER / OTHER
    other.mkdir(parents=True)
    (other / "kernel.hsaco").write_bytes(b"amd")
    group = {"child_paths": {"kernel.hsaco": str(other / "kernel.hsaco")}}
    (other / "__grp__kernel.json").write_text(json.dumps(group), encoding="utf-8")
    cache.keep(SOURCE, tmp_path / "other")
    assert {f"{KEY}/kernel.cubin", f"{OTHER}/kernel.hsaco"} <= set(laid(cache, tmp_path / "second"))


def test_another_source_gets_nothing(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert laid(cache, tmp_path / "second", "import torch") == {}


def test_what_a_process_has_open_is_not_written_to(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    own = tmp_path / "second" / FOLDER / KEY / "kernel.cubin"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"its own")
    before = own.stat()
    assert laid(cache, tmp_path / "second")[f"{KEY}/kernel.cubin"] == b"its own"
    assert (own.stat().st_ino, own.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


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


def test_a_folder_that_is_a_link_is_left(tmp_path: Path, compiled: Path) -> None:
    scratch = tmp_path / "third"
    scratch.mkdir()
    (scratch / FOLDER).symlink_to(compiled / FOLDER)
    cache = KernelCache()
    cache.keep(SOURCE, scratch)
    assert not cache.holds(SOURCE)


def test_more_than_is_worth_it_is_left(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "MOST_FILES", 1)
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert not cache.holds(SOURCE)


def test_the_least_recently_used_source_goes_first(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    for number in range(kernel_cache.MOST_SOURCES):
        cache.keep(f"{SOURCE}\n{number}", compiled)
    laid(cache, tmp_path / "second", f"{SOURCE}\n0")
    cache.keep(SOURCE, compiled)
    assert cache.holds(f"{SOURCE}\n0")
    assert not cache.holds(f"{SOURCE}\n1")
