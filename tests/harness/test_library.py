"""Replaced members of a library are named, and what the library does itself is not."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.worker.candidate.integrity import Members, owners_in

SOURCE = """
import functools

def plain(order="strict", *, scope="all"):
    return order


def wrapped(function):
    @functools.wraps(function)
    def outer(*args):
        return function(*args)

    return outer


@wrapped
def inner(order="strict"):
    return order


class Stage:
    def make(self):
        return 1

    @property
    def name(self):
        return "stage"

    @staticmethod
    def check():
        return True


class Later(Stage):
    pass
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "some_compiler").mkdir()
    (tmp_path / "some_compiler" / "__init__.py").write_text("")
    (tmp_path / "some_compiler" / "stages.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("some_compiler.stages")
    for name in ("some_compiler", "some_compiler.stages"):
        del sys.modules[name]


def function(module: Any) -> None:
    module.plain = module.inner


def method(module: Any) -> None:
    module.Stage.make = lambda self: 2  # noqa: ARG005


def getter(module: Any) -> None:
    module.Stage.name = property(lambda self: "other")  # noqa: ARG005


def static(module: Any) -> None:
    module.Stage.check = staticmethod(lambda: False)


def inherited(module: Any) -> None:
    module.Later.make = lambda self: 2  # noqa: ARG005


def wrapper_of_its_own(module: Any) -> None:
    before = module.plain
    module.plain = functools.wraps(before)(lambda *_: "relaxed")


def removed(module: Any) -> None:
    del module.plain


CHANGES = {
    function: "some_compiler.stages.plain",
    method: "some_compiler.stages.Stage.make",
    getter: "some_compiler.stages.Stage.name",
    static: "some_compiler.stages.Stage.check",
    inherited: "some_compiler.stages.Later.make",
    wrapper_of_its_own: "some_compiler.stages.plain",
    removed: "some_compiler.stages.plain",
}


def members() -> Members:
    return Members(owners_in("some_compiler"))


def test_calls_and_new_names_are_no_change(package: ModuleType) -> None:
    known = members()
    assert package.plain() == package.inner() == "strict"
    assert package.Stage().name == "stage"
    package.later = print
    assert not list(known.replaced())


def test_what_a_library_wraps_itself_is_no_change(package: ModuleType) -> None:
    known = members()
    package.plain = package.wrapped(package.plain)
    assert not list(known.replaced())


@pytest.mark.parametrize("change", CHANGES)
def test_a_replaced_member_is_named(package: ModuleType, change: Any) -> None:
    known = members()
    change(package)
    assert CHANGES[change] in list(known.replaced())


WORKERS = ("harness.worker.kit.gpu", "harness.worker.timer.timer")
LOOK = """
import importlib, sys
importlib.import_module(sys.argv[1])
from harness.worker.candidate.integrity import Snapshot
taken = Snapshot()
import triton.testing
assert not taken.differences(), taken.differences()
triton.testing.do_bench = print
assert taken.differences() == ("triton.testing.do_bench",), taken.differences()
"""


@pytest.mark.parametrize("worker", WORKERS)
def test_processes_that_have_a_gpu_can_be_looked_at_without_one(worker: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, worker], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
