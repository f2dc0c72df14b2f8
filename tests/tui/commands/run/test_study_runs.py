"""`wavedeck study` with engines: a cell that fails, after which the same command goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sessions import Home, list_sessions
from sessions.engine_info import read_engine_info
from tests.support.command_line import Shell, scripted_judge
from tests.support.engine.live_engines import right, wrong
from tests.support.engine.model_server import Answer, Seen, model_server, refuses, says
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
