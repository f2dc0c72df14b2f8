"""`run`, `attach` and `resume` with real engines and a recorded model; the first run has the real judge."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from engine.plan.request import RunPlan
from sessions import Home
from sessions.catalog import find_session, list_sessions
from sessions.engine_info import read_engine_info
from suites import load_task
from suites.loader import baseline_source
from tests.support.command_line import Shell, one_line, start
from tests.support.engine.live_engines import right
from tests.support.engine.model_server import Answer, Seen, model_server, refuses, says
from tests.support.sessions import stored_sessions as stored
from tests.support.waiting import LIMIT_S, wait_until
from tui.diagnostics import Complaint, ExitCode

pytestmark = pytest.mark.judge
MINE = ("--model", "recorded:mine")
RUN = ("run", "vector_add", *MINE)


@pytest.fixture
def recording(home: Home) -> Path:
    """Folder of `recorded:mine` in the test's home."""
    return stored.vector_add_recording(home, "mine")


def slow_down(recording: Path) -> None:
    """Make the first reply of each chain so long that it streams for some seconds."""
    for chain in recording.glob("chains/*/*/*.jsonl"):
        first, *rest = chain.read_text().splitlines()
        reply = json.loads(first)
        chain.write_text(
            "\n".join([json.dumps(reply | {"text": reply["text"] + "\n" * 12_000}), *rest]) + "\n"
        )


@pytest.mark.soak
def test_run_without_a_terminal_prints_progress_and_summary(
    shell: Shell, home: Home, recording: Path, engines: None
) -> None:
    done = shell(*RUN, "--seed", "5")
    assert (done.code, done.err) == (ExitCode.DONE, "")
    (info,) = list_sessions(home)
    lines = done.out.splitlines()
    rows = [line.split(maxsplit=2)[1:] for line in lines if line.startswith("0:")]
    assert ["vector_add#1/1", "fresh, 25 lines"] in rows
    assert any(subject == "vector_add#1/1" and words.startswith("wrong: ") for subject, words in rows)
    assert any(
        subject == "vector_add#1/2" and re.fullmatch(r"correct; tolerance used \d+ % \(case .+\)", words)
        for subject, words in rows
    )
    assert any(
        subject == "vector_add#1/2" and words.startswith("confirmed by exam") for subject, words in rows
    )
    ended = "ends: all iterations spent, best vector_add#1/2 (confirmed); spent "
    assert any(words.startswith(ended) for _, words in rows)
    assert re.fullmatch(r"vector_add +correct +confirmed +\d+ % +vector_add#1/2 +1 +2", lines[-5]), (
        "the summary"
    )
    assert lines[-3].startswith(f"session   {info.name}, finished after ")
    spent = r"attempts  2 judged; 300 tokens in, 150 out \(as recorded\); nothing was spent; .* s on devices"
    assert re.fullmatch(spent, lines[-2])
    assert lines[-1] == f"replay    wavedeck replay {info.name}"


@pytest.mark.usefixtures("scripted_judge")
def test_closed_output_leaves_the_engine_running_and_attach_follows_it_to_its_end(
    shell: Shell, home: Home, recording: Path, engines: None
) -> None:
    slow_down(recording)
    running = start(*RUN, "--headless")
    with running:
        running.stdout.close()
        err = running.stderr.read()
    session = find_session(home, "2")
    assert running.returncode == ExitCode.FAILED
    assert (
        err
        == f"wavedeck: the output was closed; {session} is still running; come back with: wavedeck attach {session}\n"
    )
    assert home.files(session).running
    attached = shell("attach")
    assert (attached.code, attached.err) == (ExitCode.DONE, "")
    assert attached.out.splitlines()[0].split()[:3] == ["0:00:00", "session", f"{session}:"]
    assert attached.out.splitlines()[-1] == f"replay    wavedeck replay {session}"


@pytest.mark.usefixtures("scripted_judge")
def test_interrupted_run_stops_and_is_resumed_and_a_killed_engine_is_reported(
    home: Home, recording: Path, engines: None
) -> None:
    def calls() -> int:
        return home.files(session).journal.read_bytes().count(b'"call_started"')

    slow_down(recording)
    with start(*RUN, "--headless") as running:
        wait_until(
            lambda: any(live.running and live.journal.exists() for live in home.session_folders()),
            "the session",
        )
        session = find_session(home, "2")
        wait_until(lambda: calls() == 1, "the first call")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == ExitCode.INTERRUPTED
    assert f"wavedeck: stopping {session}" in err
    assert out.splitlines()[-1] == f"resume    wavedeck resume {session}"
    assert list_sessions(home)[0].state == "stopped"
    with start("resume", session) as resumed:
        wait_until(lambda: calls() == 2, "the same call")
        os.kill(read_engine_info(home.files(session)).pid, signal.SIGKILL)
        _, err = resumed.communicate(timeout=LIMIT_S)
    assert resumed.returncode == ExitCode.FAILED
    assert err.splitlines()[-1].endswith(f"go on with: wavedeck resume {session}")
    # The lock file still exists, but no process holds the lock.
    assert home.files(session).lock.exists()
    assert list_sessions(home)[0].state == "crashed"


@pytest.mark.usefixtures("scripted_judge")
def test_run_with_a_refused_key_fails_and_is_resumed_once_the_key_is_right(shell: Shell, home: Home) -> None:
    allowed = False

    def answer(_: Seen) -> Answer:
        return says(right()) if allowed else refuses(401)

    with model_server(answer=answer) as server:
        model = f"openai:m@{server.openai_url}"
        arguments = ("--instances", "1", "--iterations", "1", "--headless")
        done = shell("run", "vector_add", "--model", model, *arguments)
        [session] = list_sessions(home)
        assert done.code == ExitCode.FAILED
        assert done.out.splitlines()[-1] == f"resume    wavedeck resume {session.name}"
        assert done.out.count("bad_key: 401") == 0, "a failure is printed once"
        assert "no reply (bad_key): 401: fault 401; check the key" in done.out
        failure = "vector_add#1: bad_key: 401: fault 401; check the key"
        assert failure in shell("sessions", "show", session.name).out
        allowed = True
        resumed = shell("resume", session.name)
    assert resumed.code == ExitCode.DONE, resumed.err
    assert f"wavedeck replay {session.name}" in one_line(shell("resume", session.name))


def test_session_of_a_method_that_is_gone_is_shown_but_not_resumed(shell: Shell, home: Home) -> None:
    stored.stopped(home)
    journal = home.files(stored.FIRST).journal
    journal.write_bytes(journal.read_bytes().replace(b'"method":"geak"', b'"method":"bygone"', 1))
    before = journal.read_bytes()
    assert stored.FIRST in shell("sessions").out
    assert "softmax#1/1" in shell("sessions", "show", stored.FIRST).out
    for command in (
        ("resume", stored.FIRST),
        ("steer", "extend", stored.FIRST, "--iterations", "1"),
        ("steer", "hint", stored.FIRST, "softmax#1", "Use wide loads."),
    ):
        done = shell(*command)
        assert done.code == ExitCode.USAGE
        assert f"the method bygone of {stored.FIRST} is gone" in one_line(done)
    assert journal.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "sofmax", *MINE), "no task is called 'sofmax' (did you mean 'softmax'?)"),
        (("run", "--suite", "stater", *MINE), "no suite is called 'stater' (did you mean 'starter'?)"),
        (("run", "--instances", "two"), "--instances must be a whole number from 1 to 1,000,000, not 'two'"),
        (
            (*RUN, "--instances", "2"),
            "--instances 2 is more than the 1 that recorded:mine has for vector_add",
        ),
        ((*RUN, "--targets", "gfx924"), "gfx942"),
        ((*RUN, "--devices", "9"), "no device '9' on this machine"),
        ((*RUN, "--method", "geek"), "there are: geak, geak-evolve"),
        (("run", "--model", "anthropic:x"), "anthropic:x needs a key: set ANTHROPIC_API_KEY"),
        (("eval", ".", "--task", "vector_add"), ". is a folder; give the path of one Python module"),
        (
            ("eval", "kernel.py", "--task", "vector_ad"),
            "no task is called 'vector_ad' (did you mean 'vector_add'?)",
        ),
        (("eval", "kernel.py", "--task", "vector_add", "--devices", "9"), "no device '9' on this machine"),
        (("eval", "kernel.py", "--task", "vector_add", "--targets", "gfx924"), "gfx942"),
        (("eval", "bytes.py", "--task", "vector_add"), "bytes.py is not UTF-8 text"),
        (("resume", "1999"), "no session '1999'"),
    ],
)
def test_impossible_command_is_one_line_and_starts_nothing(
    shell: Shell, home: Home, recording: Path, arguments: tuple[str, ...], message: str
) -> None:
    Path("kernel.py").write_text(baseline_source(load_task("vector_add")))
    Path("bytes.py").write_bytes(b"\xff\xfe")
    done = shell(*arguments)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert message in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert home.session_folders() == []
    assert list_sessions(home) == []


def test_tune_is_a_run_of_the_method_tune(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(requested: RunPlan, _home: Home) -> None:
        raise Complaint(
            f"{requested.method} of {', '.join(requested.tasks)}, {requested.iterations} iterations"
        )

    monkeypatch.setattr("tui.commands.run.run.prepare", refuse)
    done = shell("tune", "softmax", "--iterations", "3", "--detach")
    assert done.err.splitlines()[-1] == "wavedeck: tune of softmax, 3 iterations"
