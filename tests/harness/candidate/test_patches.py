"""Protects the check for patched libraries: a replaced member is named, the library's own changes are not."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness.worker.candidate.patches import Members, owners_in
from tests.support.programs import python

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
    yield importlib.import_module(STAGES)
    for name in ("some_compiler", STAGES):
        del sys.modules[name]


STAGES = "some_compiler.stages"
CHANGES = {
    "stages.plain = stages.inner": "plain",
    "stages.Stage.make = lambda self: 2": "Stage.make",
    "stages.Stage.name = property(lambda self: 'other')": "Stage.name",
    "stages.Stage.check = staticmethod(lambda: False)": "Stage.check",
    "stages.Later.make = lambda self: 2": "Later.make",  # over an inherited method
    "stages.plain = functools.wraps(stages.plain)(lambda *_: 'relaxed')": "plain",
    "del stages.plain": "plain",
}


def members() -> Members:
    return Members(owners_in("some_compiler"))


def test_calls_and_new_names_are_not_replaced_members(package: ModuleType) -> None:
    snapshot = members()
    assert package.plain() == package.inner() == "strict"
    assert package.Stage().name == "stage"
    package.later = print
    assert not list(snapshot.replaced())


def test_wrapper_of_the_library_is_not_a_replaced_member(package: ModuleType) -> None:
    snapshot = members()
    package.plain = package.wrapped(package.plain)
    assert not list(snapshot.replaced())


@pytest.mark.parametrize("change", CHANGES)
def test_replaced_member_is_named(package: ModuleType, change: str) -> None:
    snapshot = members()
    exec(change, {"stages": package, "functools": functools})  # noqa: S102 -- our own text
    assert f"{STAGES}.{CHANGES[change]}" in list(snapshot.replaced())


WORKERS = ("harness.worker.kit.gpu", "harness.worker.timer.timer")
LOOK = """
import importlib, sys
importlib.import_module(sys.argv[1])
from harness.worker.candidate.patches import Snapshot
taken = Snapshot()
import triton.testing
assert not taken.differences(), taken.differences()
triton.testing.do_bench = print
assert taken.differences() == ("triton.testing.do_bench",), taken.differences()
"""


@pytest.mark.parametrize("worker", [WORKERS[0], pytest.param(WORKERS[1], marks=pytest.mark.soak)])
def test_snapshot_of_gpu_worker_works_without_a_gpu(worker: str) -> None:
    python(LOOK, worker)
