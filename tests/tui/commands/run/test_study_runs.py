"""`wavedeck study` with engines: failures, interrupts and kills, after which the same command goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sessions import Home, journal_of, list_sessions
from sessions import events as ev
from sessions.catalog import study_sessions
from sessions.engine_info import read_engine_info
from tests.support.command_line import Shell, scripted_judge, start
from tests.support.engine.live_engines import right, wrong
from tests.support.engine.model_server import Answer, ModelServer, Seen, hangs, model_server, refuses, says
from tests.support.waiting import LIMIT_S, wait_until
from tui.diagnostics import ExitCode

__all__ = ["scripted_judge"]


def write(folder: Path, text: str) -> str:
    (folder / "tables.toml").write_text(text)
    return str(folder / "tables.toml")


def answer(seen: Seen) -> Answer:
    """Model that is wrong at first, and correct after its own reflection is in the prompt."""
    if "Do not write the module" in seen.prompt:
        return says("The sign.")
    return says(right() if "The sign." in seen.prompt else wrong())


def plan_for(server: ModelServer) -> str:
    return f"""
models = ["openai:test@{server.openai_url}"]
sample = 6
devices = ["cpu"]
instances = 1
iterations = 2
seeds = [1, 2]

[[methods]]
method = "reflexion"

[[methods]]
method = "direct"
iterations = 1
"""


@pytest.fixture
def no_engine_left(home: Home) -> Iterator[None]:
    yield
    for files in home.session_folders():
        info = read_engine_info(files)
        if info is not None and files.running:
            psutil.Process(info.pid).kill()


@pytest.mark.usefixtures("scripted_judge", "no_engine_left")
def test_failed_cell_does_not_stop_the_next_and_the_same_command_goes_on(
    shell: Shell, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVEDECK_MODEL_KEY", "a-key")
    refused = ["bad"]

    def reply(seen: Seen) -> Answer:
        return refuses(401, message="no such key") if seen.body["model"] in refused else answer(seen)

    with model_server(answer=reply) as server:
        models = f'models = ["openai:bad@{server.openai_url}", "openai:test@{server.openai_url}"]'
        plan = f'{models}\ntasks = ["vector_add"]\ndevices = ["cpu"]\ninstances = 1\n[[methods]]\nmethod = "direct"\n'
        failed = shell("study", write(tmp_path, plan), "-y")
        assert failed.code == ExitCode.FAILED
        assert "no such key" in failed.err
        assert "1 of 2 cells are finished; the same command runs the others" in failed.out
        refused.clear()
        done = shell("study", write(tmp_path, plan), "-y")
        assert done.code == ExitCode.DONE, done.err
        requests = len(server.requests)
        again = shell("study", write(tmp_path, plan), "-y")
        assert (again.code, len(server.requests)) == (ExitCode.DONE, requests), "no cell runs twice"
    assert "so far: 2 of 2 cells, 2 attempts" in done.err
    assert len(list_sessions(home)) == 2


@pytest.mark.soak
@pytest.mark.usefixtures("scripted_judge", "no_engine_left")
def test_killed_study_goes_on_and_asks_for_no_finished_reply_again(
    shell: Shell, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two methods, two seeds, six tasks: killed within a call of the second cell, with its engine; interrupted; resumed."""
    monkeypatch.setenv("WAVEDECK_MODEL_KEY", "a-key")
    silent_after = [8]

    def reply(seen: Seen) -> Answer:
        return hangs("", after=-1) if len(server.requests) > silent_after[0] else answer(seen)

    with model_server(answer=reply) as server:
        plan = write(tmp_path, plan_for(server))
        running = start("study", plan, "-y")
        wait_until(lambda: len(server.requests) > silent_after[0], "a call that hangs")
        [live] = [files for files in home.session_folders() if files.running]
        info = read_engine_info(live)
        assert info is not None
        os.kill(running.pid, signal.SIGKILL)
        os.kill(info.pid, signal.SIGKILL)
        running.communicate(timeout=LIMIT_S)
        wait_until(lambda: not live.running, "the engine to end")

        silent_after[0] = len(server.requests) + 3
        waiting = start("study", plan, "-y")
        wait_until(lambda: len(server.requests) > silent_after[0], "a call that hangs")
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=LIMIT_S)
        assert waiting.returncode == ExitCode.INTERRUPTED, err

        silent_after[0] = 10_000
        done = shell("study", plan, "-y")
        assert done.code == ExitCode.DONE, done.err
        [cells] = study_sessions(home).values()
        assert [cell.settings.method for cell in cells.values()] == ["reflexion", "direct"] * 2
        assert [len(cell.settings.tasks) for cell in cells.values()] == [6] * 4
        calls: list[str] = []
        for cell in cells.values():
            events = journal_of(home, cell.name).events
            calls += [f"{cell.name} {event.call}" for event in events if isinstance(event, ev.CallFinished)]
        assert len(calls) == len(set(calls)) == sum(cell.calls or 0 for cell in cells.values())
