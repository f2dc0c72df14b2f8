"""Where the heap of a worker lies, whatever Python started it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from harness.worker.serving.high_heap import loader_of_fixed, python_command

ALLOCATES = (
    "import ctypes; malloc = ctypes.CDLL(None).malloc; malloc.restype = ctypes.c_void_p; print(malloc(64))"
)
PYTHONS = sorted(Path("/usr/bin").glob("python3.[0-9]*[0-9]"))
"""Those of the system: Debian's and Ubuntu's have fixed addresses."""


def allocated(*command: str) -> int:
    return int(subprocess.run([*command, "-c", ALLOCATES], check=True, capture_output=True).stdout)


def test_a_worker_allocates_above_4_gib() -> None:
    assert allocated(*python_command()) >= 1 << 32


@pytest.mark.skipif(not PYTHONS, reason="the system has no Python of its own")
def test_a_python_with_fixed_addresses_allocates_above_4_gib_by_way_of_its_loader() -> None:
    for python in PYTHONS:
        assert allocated(*python_command(str(python))) >= 1 << 32
        assert (loader_of_fixed(python) is None) == (allocated(str(python)) >= 1 << 32)


def test_a_virtual_environment_is_found_by_the_name_of_its_link(tmp_path: Path) -> None:
    for python in (Path(sys.executable).resolve(), *PYTHONS):
        folder = tmp_path / python.name
        venv.create(folder, symlinks=True)
        (folder / "bin" / "python").unlink()
        (folder / "bin" / "python").symlink_to(python)
        link = str(folder / "bin" / "python")
        words = (*python_command(link), "-c", "import sys; print(sys.prefix, sys.executable)")
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        assert said.split() == [str(folder), link]


def test_what_is_no_such_program_has_no_loader(tmp_path: Path) -> None:
    for name, data in (("empty", b""), ("short", b"\x7fELF"), ("script", b"#!/bin/sh\n" + bytes(64))):
        (tmp_path / name).write_bytes(data)
        assert loader_of_fixed(tmp_path / name) is None
    assert loader_of_fixed(tmp_path / "missing") is None
