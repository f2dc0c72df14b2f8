"""Agents that the engine starts: a scripted program under the real guard and MCP server; the judge is scripted."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import psutil
import pytest

from engine.process import launch
from harness.sandbox import landlock
from sessions import Home, fold
from sessions.engine_info import read_engine_info
from sessions.events import CallFinished, ReplyPiece
from sessions.state.state import SessionState
from suites import load_task
from tests.support.command_line import Shell
from tests.support.engine.live_engines import journal, until_left
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engines", "scripted_judge")
AGENT = Path(__file__).parents[2] / "support" / "engine" / "scripted_agent.py"
KEY = "vector_add#1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL", str(load_task("vector_add").folder / "baseline.py"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-another-provider")


def run(shell: Shell, action: str, *options: str) -> str:
    """Start a session with the scripted agent and return its name."""
    command = f"{quote(sys.executable)} {quote(str(AGENT))} {action} {{prompt}}"
    done = shell("run", "vector_add", "--agent-command", command, "--devices", "cpu", "--detach", *options)
    assert done.code == 0, done.err
    return done.out.strip()


def state_of(home: Home, session: str) -> SessionState:
    return fold(journal(home, session))  # type: ignore[arg-type]


def said(home: Home, session: str) -> list[str]:
    """The words of the agent, by call."""
    return [event.reasoning for event in journal(home, session) if isinstance(event, CallFinished)]


def processes_of(session: str) -> list[psutil.Process]:
    """The processes that work in the session's folders."""
    processes = []
    for process in psutil.process_iter():
        try:
            if session in process.cwd() or any(session in word for word in process.cmdline()):
                processes.append(process)
        except psutil.Error:
            continue
    return processes


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A person's terminal, which the agent knows: their side of it, without waits."""
    master, slave = os.openpty()
    os.set_blocking(master, False)
    monkeypatch.setenv("PTS", os.ttyname(slave))
    monkeypatch.setenv("PTS_FD", f"/proc/{os.getpid()}/fd/{slave}")
    yield master
    os.close(master)
    os.close(slave)


def test_an_agent_is_run_and_its_words_are_shown_without_keys_and_reach_no_terminal(
    home: Home, shell: Shell, person: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("MY_DB_PASS", "GITHUB_PAT", "MAIL_PASSWD", "PGP_PASSPHRASE", "AWS_CREDENTIALS", "NPM_AUTH")
    letters, draw = f"{string.ascii_letters}{string.digits}-_", random.Random(1)
    keys = ["".join(draw.choices(letters, k=8 + 2 * number)) for number in range(24)]
    for number, key in enumerate(keys):
        monkeypatch.setenv(f"{names[number % len(names)]}{number or ''}", key)
    monkeypatch.setenv("LEAKS", str(tmp_path / "leaks"))
    (tmp_path / "leaks").write_text(json.dumps(keys))
    session = run(shell, "leaky", "--iterations", "1")
    until_left(home, session)
    state = state_of(home, session)
    [attempt] = state.attempts()
    assert attempt.verdict == "correct"
    assert attempt.strategy.startswith("Add. [key]")
    words, after = said(home, session)
    assert words.startswith("The prompt has the signature.\n")
    assert "variables ['WAVEDECK_MCP_TOKEN']\n" in words
    if landlock.version():
        assert words.count("write to the terminal: Permission denied") == 2
        assert words.count(": done") == 3
        assert "tmux: 1\n" in words, "a shell of a tmux server that runs already is not confined"
        with pytest.raises(BlockingIOError):
            os.read(person, 1)
    assert "correct\n" in after
    assert after.endswith('[key]"]\n')  # after its last evaluation it could still end by itself
    assert attempt.calls[0].messages[0].content.startswith("#")
    assert state.instances[KEY].finished == "iterations"
    wait_until(lambda: not processes_of(session), "the end of all processes")
    keys.append("".join(chr(int(number)) for number in re.search("letters ([0-9 ]+)", words)[1].split()))
    out = Path("out")
    shell("export", session, str(out / "export"))
    shell("report", session, "-o", str(out / "report.html"))
    shell("sessions", "dataset", session, "--format", "winners", "-o", str(out / "winners"))
    subprocess.run(["git", "init", "-q", "--bare", "pushed.git"], check=True)
    shell("sessions", "push", "pushed.git", session)
    written = [
        path.read_bytes() for folder in (home.root, Path()) for path in folder.rglob("*") if path.is_file()
    ]
    objects = ("cat-file", "--batch-all-objects", "--batch")
    written += [
        subprocess.check_output(["git", "-C", store, *objects]) for store in (home.store, "pushed.git")
    ]
    everything = b"\n".join(written).decode(errors="replace")
    folded = re.sub(r"\\n|[\W_]", "", everything)
    for key in keys:
        encoded = base64.b64encode(f"key={key};".encode()).decode()
        for spelling in (key, key[:12], key[-12:], encoded, base64.urlsafe_b64encode(key.encode()).decode()):
            assert spelling not in everything, spelling
        assert re.sub(r"[\W_]", "", key) not in folded, key
    assert "[key]" in everything


@pytest.mark.soak
def test_nothing_that_an_agent_says_is_a_result(home: Home, shell: Shell) -> None:
    session = run(shell, "liar")
    until_left(home, session)
    state = state_of(home, session)
    assert [attempt.verdict for attempt in state.attempts()] == ["wrong"]
    assert state.instances[KEY].finished == "submitted"
    assert not state.instances[KEY].solved
    words = "".join(said(home, session))
    assert words.count('"speedup": 10.0') == 2
    assert "keys: []" in words
    assert "write a harness here: done" in words
    if landlock.version():
        for action in ("read the home", "read the token", "write the judge"):
            assert f"{action}: Permission denied" in words


@pytest.mark.soak
def test_a_flood_of_words_is_cut_and_the_kernel_is_judged(home: Home, shell: Shell) -> None:
    session = run(shell, "flood")
    until_left(home, session)
    pieces = [event.text for event in journal(home, session) if isinstance(event, ReplyPiece)]
    assert sum(map(len, pieces)) < 400_000
    assert "is not kept]" in "".join(pieces)
    assert state_of(home, session).attempts()[0].verdict == "correct"


@pytest.mark.soak
@pytest.mark.parametrize("ending", ["retire", "stop", "kill", "wall time"])
def test_an_endless_agent_ends_with_its_whole_tree(home: Home, shell: Shell, ending: str) -> None:
    session = run(shell, "endless", *(("--budget-wall-s", "15") if ending == "wall time" else ()))
    pieces = (ReplyPiece,)
    wait_until(lambda: any(isinstance(event, pieces) for event in journal(home, session)), "the first words")
    assert len(processes_of(session)) > 3
    if ending == "kill":
        os.kill(read_engine_info(home.files(session)).pid, signal.SIGKILL)
    elif ending != "wall time":
        assert shell(ending, session, *((KEY,) if ending == "retire" else ())).code == 0
    until_left(home, session)
    wait_until(lambda: not processes_of(session), "the end of all processes")
    if ending in ("retire", "wall time"):
        reason = state_of(home, session).instances[KEY].finished
        assert reason == ("retired" if ending == "retire" else "budget")


@pytest.mark.soak
def test_an_agent_that_asks_for_a_thousand_evaluations_gets_its_budget(home: Home, shell: Shell) -> None:
    session = run(shell, "greedy", "--iterations", "3")
    until_left(home, session)
    assert [attempt.verdict for attempt in state_of(home, session).attempts()] == ["correct"] * 3
    assert "3 judged" in "".join(said(home, session))


@pytest.mark.soak
def test_an_agent_with_too_many_processes_is_ended(home: Home, shell: Shell) -> None:
    session = run(shell, "forks")
    until_left(home, session)
    state = state_of(home, session)
    assert state.instances[KEY].finished == "model_failed"
    assert "more than 512 processes" in state.instances[KEY].message
    wait_until(lambda: not processes_of(session), "the end of all processes")


@pytest.mark.soak
def test_a_resumed_agent_goes_on_from_its_best(home: Home, shell: Shell) -> None:
    session = run(shell, "honest", "--iterations", "4")
    wait_until(
        lambda: state_of(home, session).attempts()[1:] and state_of(home, session).attempts()[1].evaluation,
        "the second verdict",
    )
    os.kill(read_engine_info(home.files(session)).pid, signal.SIGKILL)
    until_left(home, session)
    launch.resume(home, session)
    until_left(home, session)
    state = state_of(home, session)
    verdicts = [attempt.verdict for attempt in state.attempts()]
    assert verdicts == ["wrong", "correct", "wrong", "correct"]
    assert [attempt.same_as for attempt in state.attempts()] == ["", "", f"{KEY}/1", f"{KEY}/2"]
    assert [attempt.strategy for attempt in state.attempts()] == ["Subtract.", "Add instead."] * 2
    assert "Now add." in "".join(said(home, session))
    assert "I go on from my best True" in "".join(said(home, session))
    [prompt] = state.attempt(f"{KEY}/3").calls[0].messages
    assert f"Your best correct attempt is {KEY}/2" in prompt.content
    assert "2 evaluations are used" in prompt.content


@pytest.mark.soak
def test_an_agent_that_cannot_work_stops_the_session(home: Home, shell: Shell) -> None:
    session = run(shell, "broken")
    until_left(home, session)
    state = state_of(home, session)
    assert "ended with exit code 1: I am not logged in" in state.instances[KEY].message
    assert state.stopped == f"1 instance lost its model or judge: {KEY}"


@pytest.mark.soak
def test_stated_tokens_end_an_agent_at_the_budget(home: Home, shell: Shell) -> None:
    session = run(shell, "spender", "--agent", "claude-code", "--budget-tokens", "1000")
    until_left(home, session)
    state = state_of(home, session)
    assert state.instances[KEY].finished == "budget"
    assert "of 1,000 tokens; a new run takes another --budget-tokens" in state.instances[KEY].message
    assert 1000 <= state.input_tokens + state.output_tokens <= 2000
    assert "Thought 2." in "".join(said(home, session))
    assert state.attempts()[0].verdict == "wrong"
    wait_until(lambda: not processes_of(session), "the end of all processes")


@pytest.mark.soak
def test_a_budget_that_a_program_does_not_state_is_named(home: Home, shell: Shell) -> None:
    options = ("--agent", "claude-code", "--budget-usd", "1", "--budget-tokens", "9000", "--iterations", "1")
    session = run(shell, "brief", *options)
    until_left(home, session)
    state = state_of(home, session)
    assert state.instances[KEY].finished == "iterations"
    assert [words for level, words in state.notices if level == "warning" and "--budget" in words] == [
        "claude-code states its cost only when it ends: --budget-usd is held from then on",
        "claude-code ended without stating its cost: --budget-usd lacks this work",
        "claude-code ended without stating its tokens: --budget-tokens lacks this work",
    ]


def test_wrong_agents_are_refused(shell: Shell) -> None:
    for options, words in (
        (("--agent", "clod"), "--agent knows claude-code"),
        (("--agent-command", "true"), "needs {prompt}"),
        (("--agent-command", "no-such-agent {prompt}"), "no-such-agent is not on the path"),
        (
            ("--agent-command", "true {prompt}", "--budget-usd", "1"),
            "the output of true states no cost to the engine",
        ),
        (
            ("--agent", "codex", "--agent-command", "true {prompt}", "--budget-usd", "1"),
            "the output of codex states no cost to the engine",
        ),
        (("--method", "agent", "--budget-tokens", "1"), "an agent that you start yourself states no tokens"),
        (("--agent-command", "true {prompt}", "--model", "best"), "takes no --model"),
    ):
        done = shell("run", "vector_add", "--devices", "cpu", *options)
        assert done.code == 2
        assert words in done.err
    Path("wavedeck.toml").write_text('agent-command = "true {prompt}"\n')
    assert "may not set a command" in shell("run", "vector_add").err
