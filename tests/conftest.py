"""Fixtures of every test: an empty home without API keys, and the profile of the property tests."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.command_line import scripted_judge
from tests.support.judge.judging import pool

__all__ = ["pool", "scripted_judge"]
SOAK = os.environ.get("WAVEDECK_SOAK") == "1"
"""True if property tests run with the full number of examples (`make soak`)."""

settings.register_profile(
    "default",
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # The same examples on each run: a failure then comes from the change under test. Soak searches for new examples.
    derandomize=True,
    database=None,
)
settings.register_profile(
    "soak", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soak" if SOAK else "default")

LONG_FILES = (
    "faults/test_random_faults.py",
    "tui/commands/run/test_run.py",
    "tui/commands/run/test_own_kernels.py",
    "harness/compiler/test_compiler.py",
    "harness/stages/test_evaluate.py",
    "harness/recording/test_scripts.py",
    "engine/process/test_process.py",
    "faults/test_machines.py",
    "faults/test_harness_faults.py",
    "faults/test_endurance.py",
    "faults/test_engine_kill.py",
    "test_main_job.py",
    "tui/commands/run/test_eval.py",
    "tui/commands/run/captures/test_capture.py",
    "tui/cockpit/test_navigation.py",
    "tui/screens/test_pictures.py",
    "tui/screens/test_review.py",
    "tui/terminal/test_engine_start.py",
    "tui/terminal/test_layers.py",
    "tui/terminal/test_story.py",
    "tui/terminal/test_terminal.py",
)
"""Files of the longest tests, and all long files of the folder that sorts last. They run first: a worker that starts a long file
last leaves the other cores idle."""


gc.set_threshold(50_000, 20, 20)
"""A worker has a million objects after the collection of tests, and each pass over them takes a third of a second."""

NUMBERS = itertools.count()
"""Numbers of the tests' folders."""
KEPT = frozenset({"WAVEDECK_SOAK"})
KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `soak`, and put those of `LONG_FILES` first.

    `--dist loadfile` gives out files in the order of the tests.
    """
    for item in items:
        if not SOAK and item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.skip(reason="takes long: make soak"))
    folder = Path(__file__).parent
    places = {folder / name: place for place, name in enumerate(LONG_FILES)}
    missing = [str(file) for file in places if not file.is_file()]
    assert not missing, f"LONG_FILES names files that do not exist: {missing}"
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """Let Python's garbage collector skip modules and tests, which stay anyway."""
    gc.freeze()


def isolate(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Redirect all paths that Wavedeck, git or Triton writes to into `home`, and remove keys and settings."""
    for name in tuple(os.environ):
        if name in KEYS or (name.startswith("WAVEDECK_") and name not in KEPT):
            patch.delenv(name)
    patch.setenv("HOME", str(home / "person"))
    patch.setenv("WAVEDECK_HOME", str(home / "wavedeck"))
    patch.setenv("XDG_DATA_HOME", str(home / "data"))
    patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (home / "person").mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session", autouse=True)
def isolated_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Isolate fixtures of module and session scope (pools, servers): they start before any test.

    The run-time folder has a short path: it holds unix sockets, and a socket path has at most 107 bytes.
    """
    runtime = Path(tempfile.mkdtemp(prefix="wd-"))
    with pytest.MonkeyPatch.context() as patch:
        isolate(patch, tmp_path_factory.mktemp("session"))
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        yield
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """An empty folder. pytest's own fixture looks through the folders of all tests before it for a free number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session", autouse=True)
def unsynced_files() -> Iterator[None]:
    """Let no test wait for the disk: its files end with it, and no test can cut the power. Soak syncs as always.

    Tests of when and what is synced put functions of their own in these places; engines in other processes sync.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in () if SOAK else ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _: None)
        yield


@pytest.fixture(autouse=True)
def isolated_home(isolated_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give one test an empty home; returns `$WAVEDECK_HOME`, which does not exist yet."""
    isolate(monkeypatch, tmp_path / "isolated")
    return tmp_path / "isolated" / "wavedeck"
