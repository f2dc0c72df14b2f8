"""What a candidate may change in a library that compiles its kernels: each way is told by its name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.worker.guest.library import Library

SOURCE = """
import functools
import math

TABLE = {"one": 1}


def plain(order="strict"):
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


def defaults(module: Any) -> None:
    module.plain.__defaults__ = ("relaxed",)


def code(module: Any) -> None:
    module.inner.__wrapped__.__code__ = module.plain.__code__.replace(co_nlocals=1, co_varnames=("order",))


def method(module: Any) -> None:
    module.Stage.make = lambda self: 2  # noqa: ARG005


def getter(module: Any) -> None:
    module.Stage.name.fget.__code__ = (lambda self: "other").__code__  # noqa: ARG005


ALWAYS = {
    defaults: "some_compiler.stages.plain",
    code: "some_compiler.stages.inner",
    method: "some_compiler.stages.Stage.make",
    getter: "some_compiler.stages.Stage.name",
}


def entry(module: Any) -> None:
    module.TABLE["two"] = 2


def shadow(module: Any) -> None:
    module.len = lambda _: 0


WHOLE = {
    entry: "some_compiler.stages.TABLE",
    shadow: "some_compiler.stages.len",
}


@pytest.mark.parametrize("depth", ["functions", "whole"])
def test_nothing_is_told_where_nothing_was_changed(package: ModuleType, depth: str) -> None:
    library = Library("some_compiler", whole=depth == "whole")
    assert package.plain() == package.inner() == "strict"
    assert package.Stage().name == "stage"
    assert not list(library.replaced())


@pytest.mark.parametrize("depth", ["functions", "whole"])
@pytest.mark.parametrize("change", ALWAYS)
def test_what_a_function_does_is_held_beside_what_it_did(
    package: ModuleType, change: Any, depth: str
) -> None:
    library = Library("some_compiler", whole=depth == "whole")
    change(package)
    assert ALWAYS[change] in list(library.replaced())


@pytest.mark.parametrize("change", WHOLE)
def test_where_a_package_rests_all_that_it_holds_is(package: ModuleType, change: Any) -> None:
    library = Library("some_compiler", whole=True)
    change(package)
    assert WHOLE[change] in list(library.replaced())


def test_what_is_ours_is_no_difference(package: ModuleType) -> None:
    library = Library("some_compiler", whole=True)
    method(package)
    library.accept(package.Stage, "make")
    assert not list(library.replaced())


WORKERS = ("harness.worker.guest.gpu", "harness.worker.timing.timer")
LOOK = """
import importlib, sys
importlib.import_module(sys.argv[1])
from harness.worker.guest.integrity import Snapshot
taken = Snapshot.take()
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
