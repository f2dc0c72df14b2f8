"""Protects the copy of compiled kernels between sandboxes: kernels pass, a candidate's files and messages do not."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from harness.processes.kernel_cache import FOLDER, KernelCache

SOURCE = "def kernel(): ..."
KEY, OTHER = "K" * 52, "O" * 52
"""Names of kernel folders, as long as Triton's."""


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A scratch folder in which Triton compiled one kernel."""
    folder = tmp_path / "first" / FOLDER / KEY
    folder.mkdir(parents=True)
    (folder / "kernel.cubin").write_bytes(b"\x7fELF" + str(tmp_path / "first").encode())
    group = {"child_paths": {"kernel.cubin": str(folder / "kernel.cubin")}}
    (folder / "__grp__kernel.json").write_text(json.dumps(group), encoding="utf-8")
    return tmp_path / "first"


def restore(cache: KernelCache, scratch: Path, source: str = SOURCE) -> dict[str, bytes]:
    scratch.mkdir(exist_ok=True)
    cache.lay(source, scratch)
    files = (file for file in (scratch / FOLDER).rglob("*") if file.is_file())
    return {str(file.relative_to(scratch / FOLDER)): file.read_bytes() for file in files}


def test_restored_kernels_have_paths_of_new_folder(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    second = tmp_path / "second"
    files = restore(cache, second)
    group = json.loads(files[f"{KEY}/__grp__kernel.json"])
    assert group["child_paths"] == {"kernel.cubin": str(second / FOLDER / KEY / "kernel.cubin")}
    assert files[f"{KEY}/kernel.cubin"] == (compiled / FOLDER / KEY / "kernel.cubin").read_bytes()


def test_any_user_may_read_and_add_restored_kernels(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    before = os.umask(0o077)
    try:
        restore(cache, tmp_path / "second")
    finally:
        os.umask(before)
    top = tmp_path / "second" / FOLDER
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (top, top / KEY)] == [0o777, 0o777]
    assert {stat.S_IMODE(file.stat().st_mode) for file in (top / KEY).iterdir()} == {0o644}


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
def test_candidate_cannot_pass_file_names_to_next_process(
    compiled: Path, tmp_path: Path, folder: str, file: str
) -> None:
    """While it is judged, a candidate could store the time in a name; while it is timed, it could read the name."""
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    honest = restore(cache, tmp_path / "second")
    (compiled / FOLDER / folder).mkdir(exist_ok=True)
    (compiled / FOLDER / folder / file).write_bytes(b"now")
    cache.keep(SOURCE, compiled)
    assert restore(cache, tmp_path / "third").keys() == honest.keys()


def test_libraries_are_copied_only_for_baselines(compiled: Path, tmp_path: Path) -> None:
    (compiled / FOLDER / KEY / "cuda_utils.cpython-312-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert not any(name.endswith(".so") for name in restore(cache, tmp_path / "second"))
    cache.keep("baseline", compiled, libraries=True)
    assert any(name.endswith(".so") for name in restore(cache, tmp_path / "third", "baseline"))


def test_different_source_gets_no_kernels(compiled: Path, tmp_path: Path) -> None:
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    assert restore(cache, tmp_path / "second", "import torch") == {}


def test_links_and_pipes_are_not_followed(compiled: Path, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-secret", encoding="utf-8")
    (compiled / FOLDER / KEY / "link").symlink_to(secret)
    (compiled / FOLDER / OTHER).symlink_to(tmp_path)
    os.mkfifo(compiled / FOLDER / KEY / "pipe")
    cache = KernelCache()
    cache.keep(SOURCE, compiled)
    files = restore(cache, tmp_path / "second")
    assert set(files) == {f"{KEY}/kernel.cubin", f"{KEY}/__grp__kernel.json"}
