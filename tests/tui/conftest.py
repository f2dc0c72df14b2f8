"""Fixtures of the tests of the command line and the cockpit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from sessions import Home, home_from
from sessions.engine_info import read_engine_info
from tests.support.cockpit import cockpits
from tests.support.command_line import Shell
from tests.support.judge.nurseries import one_nursery


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs `wavedeck` in an empty working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Shell(capsys)


@pytest.fixture
def home(isolated_home: Path) -> Home:
    """Home of this test."""
    return home_from(os.environ)


@pytest.fixture
def engines(home: Home) -> Iterator[None]:
    """Kills the engines that still run at the end of the test."""
    yield
    for live in home.session_folders():
        info = read_engine_info(live)
        if info is not None and live.running:
            os.kill(info.pid, signal.SIGKILL)


@pytest.fixture(scope="session", autouse=True)
def css_parsed_once() -> Iterator[None]:
    """Lets all apps of a process share the rules of the same CSS with the same variables: each app parses for 50 ms."""
    parse = Stylesheet._parse_rules
    kept: dict[object, list[RuleSet]] = {}

    def parse_once(sheet: Stylesheet, *arguments: Any, **options: Any) -> list[RuleSet]:
        key = (arguments, *options.items(), *sheet._variables.items())
        if key not in kept:
            kept[key] = parse(sheet, *arguments, **options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def undrawn_frames() -> Iterator[None]:
    """Skips the drawing of frames: without a terminal Textual drops them, after 40 % of a test's CPU time.

    `cockpits.until` and `pictures.picture` draw the screen that they waited for or show.
    """

    def skip(compositor: Compositor, *_: object, **__: object) -> None:
        compositor._dirty_regions.clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", skip)
        yield


@pytest.fixture(autouse=True)
def shared_nursery() -> Iterator[None]:
    with one_nursery():
        yield


@pytest.fixture(autouse=True)
def patient_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets pilots wait for the app and not for the CPU, and lets toasts stay: a busy machine looks at them after seconds."""
    monkeypatch.setattr("textual.app.wait_for_idle", cockpits.settle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", cockpits.settle)
    notify = App.notify

    def notify_for_long(app: App[object], message: str, **options: Any) -> None:
        notify(app, message, **{**options, "timeout": 3600})

    monkeypatch.setattr(App, "notify", notify_for_long)
