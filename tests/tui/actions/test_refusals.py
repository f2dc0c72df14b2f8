"""A command that a session cannot follow is refused with the same words by keys, the `:` line, the shell and the socket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from engine.process.control import ControlServer
from harness import Verdict
from sessions import Home, SessionState, fold
from sessions.catalog import journal_of
from sessions.events import (
    AttemptBanned,
    Command,
    DecisionMade,
    Paused,
    PersonCommand,
    RetireAsked,
    SessionTitled,
    checked,
)
from sessions.store.reconcile import record_at_rest
from tests.support.cockpit.cockpits import RecordingDecider
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.actions.catalogue import ACTIONS
from tui.actions.line import LineSubject, parse
from tui.cockpit.desk.desk import Commander
from tui.cockpit.screens.acting import ActingScreen

TOKEN = "secret"
ATTEMPT, INSTANCE = "softmax#1/1", "softmax#1"
WRONG: tuple[PersonCommand, ...] = ()
"""A session that was stopped after one wrong attempt on `cpu`."""
CORRECT = None
"""A session that was stopped after one correct attempt on `cpu`."""
FINISHED = "finished"

CASES: list[tuple[object, str, dict[str, object], tuple[str, ...], str]] = [
    (WRONG, f"accept {ATTEMPT}", {"type": "decision_made", "attempt": ATTEMPT, "accepted": True}, (), "is wrong"),
    (WRONG, f"reject {INSTANCE}/9", {"type": "decision_made", "attempt": f"{INSTANCE}/9", "accepted": False}, (), "nearest"),
    (WRONG, f"undo {ATTEMPT}", {"type": "decision_undone", "attempt": ATTEMPT}, (), "no decision"),
    ((Paused(instance=INSTANCE),), f"pause {INSTANCE}", {"type": "paused", "instance": INSTANCE}, (), "already paused"),
    ((Paused(),), f"unpause {INSTANCE}", {"type": "unpaused", "instance": INSTANCE}, (), "the whole session is paused"),
    (WRONG, "unpause session", {"type": "unpaused"}, ("unpause",), "the session is not paused"),
    (WRONG, f"pause {INSTANCE}7", {"type": "paused", "instance": f"{INSTANCE}7"}, (), "no instance"),
    ((RetireAsked(instance=INSTANCE),), f"retire {INSTANCE}", {"type": "retire_asked", "instance": INSTANCE}, (), "already being"),
    (FINISHED, f"hint {INSTANCE} go", {"type": "hint_given", "instance": INSTANCE, "text": "go"}, (), "is finished"),
    (WRONG, f"pin {ATTEMPT}", {"type": "attempt_pinned", "attempt": ATTEMPT}, (), "not correct"),
    ((AttemptBanned(attempt=ATTEMPT),), f"ban {ATTEMPT}", {"type": "attempt_banned", "attempt": ATTEMPT}, (), "already banned"),
    (WRONG, f"fork {INSTANCE}/9", {"type": "instance_forked", "base": f"{INSTANCE}/9"}, (), "no attempt"),
    (WRONG, f"edit {INSTANCE}/9", {"type": "instance_forked", "base": f"{INSTANCE}/9", "source": "x"}, ("edit", f"{INSTANCE}/9", __file__), "no attempt"),
    (WRONG, f"measure {ATTEMPT}", {"type": "measure_asked", "attempt": ATTEMPT}, (), "not correct"),
    (CORRECT, f"measure {ATTEMPT}", {"type": "measure_asked", "attempt": ATTEMPT}, (), "no GPU"),
    (WRONG, f"profile {ATTEMPT}", {"type": "profile_asked", "attempt": ATTEMPT}, (), "not correct"),
    (CORRECT, f"profile {ATTEMPT}", {"type": "profile_asked", "attempt": ATTEMPT}, (), "no GPU"),
    (WRONG, "gpu 0 lend", {"type": "device_lent", "device": "0"}, (), "no GPU"),
    (WRONG, "gpu 0 return", {"type": "device_returned", "device": "0"}, (), "no GPU"),
    (WRONG, "extend 1001", {"type": "session_extended", "iterations": 1001}, ("extend", "--iterations", "1001"), "from 1 to 1000"),
    (WRONG, "stop", {"type": "stop"}, (), "not running"),
    ((SessionTitled(title="night"),), "title night", {"type": "session_titled", "title": "night"}, ("sessions title", "night"), "already has"),
]  # fmt: skip
"""Commands before, the `:` line, the line of the socket, the words of the shell if they differ, and words of the refusal."""


def test_cases_have_each_command_of_a_person() -> None:
    named = {line.split()[0] for _, line, *_ in CASES}
    assert named == {action.name for action in ACTIONS.values() if action.event}


@pytest.mark.parametrize(("before", "line", "fields", "words", "part"), CASES)
def test_refusal_has_the_same_words_on_every_surface(
    home: Home,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    before: object,
    line: str,
    fields: dict[str, object],
    words: tuple[str, ...],
    part: str,
) -> None:
    monkeypatch.setattr("tui.actions.send.plan_at_rest", lambda *_: None)
    if before == FINISHED:
        stored.finished(home)
    else:
        stored.stopped(home, verdict=Verdict.CORRECT if before is CORRECT else Verdict.WRONG)
    for command in before if isinstance(before, tuple) else ():
        record_at_rest(home, stored.FIRST, command)
    state = fold(journal_of(home, stored.FIRST).events)
    order = parse(line, LineSubject(), state)
    refusal = order.refusal(state)
    assert part in refusal
    name, *arguments = words or line.split()
    command = ACTIONS[name].shell if name in ACTIONS else name
    done = shell(*command.split(), stored.FIRST, *arguments)
    assert (done.code, one_line(done)) == (2, f"wavedeck: {refusal}")
    assert asyncio.run(answers(state, [fields])) == [{"ok": False, "error": refusal}]
    if ACTIONS[order.name].key and order.target in (INSTANCE, ATTEMPT):
        assert grey(order.name, state) == refusal
    assert fold(journal_of(home, stored.FIRST).events) == state


def grey(name: str, state: SessionState) -> str:
    """Return what the key of the action says about the only attempt."""
    desk = SimpleNamespace(feed=SimpleNamespace(state=state, replay=None), readonly=False)
    desk.commander = Commander(desk, RecordingDecider())  # type: ignore[arg-type]
    screen = SimpleNamespace(
        steered_instance=state.instances[INSTANCE],
        steered_attempt=state.attempt(ATTEMPT),
        feed=desk.feed,
        desk=desk,
    )
    return ActingScreen.why_not(screen, name)  # type: ignore[arg-type]


async def answers(
    state: SessionState, requests: Sequence[object], followed: list[Command] | None = None
) -> list[Any]:
    """Return the answers of an engine in this state to lines on its socket; a `dict` gets the token."""

    async def handle(command: Command) -> int:
        event = checked(command, state)
        if followed is not None:
            followed.append(event)
        return 1

    async with ControlServer(token=TOKEN, environ=os.environ, handle=handle) as server:
        reader, writer = await asyncio.open_unix_connection(server.path, limit=4 << 20)
        received = []
        for request in requests:
            fields = {"token": TOKEN, **request} if isinstance(request, dict) else request
            writer.write(msgspec.json.encode(fields) + b"\n")
            await writer.drain()
            received.append(msgspec.json.decode(await reader.readline()))
        writer.close()
    return received


HINT: dict[str, object] = {"type": "hint_given", "instance": INSTANCE, "text": "go"}
REJECT: dict[str, object] = {"type": "decision_made", "attempt": ATTEMPT, "accepted": False}
ODD: list[tuple[object, str]] = [
    ({"type": "explode"}, "no command is called 'explode'; there are ping, stop, "),
    ({"type": ["paused"]}, "no command is called"),
    ({}, "no command is called"),
    ({"type": "x" * 10_000}, "no command is called 'xxx"),
    (HINT | {"loud": True}, "hint_given has no field 'loud'; it has by, instance, text"),
    (HINT | {"seq": 9}, "has no field 'seq'"),
    ({"type": "instance_forked", "base": ATTEMPT, "task": "../x"}, "has no field 'task'"),
    ({"type": "hint_given", "text": "go"}, "missing required field `instance`"),
    (HINT | {"text": 7}, "Expected `str`, got `int`"),
    (HINT | {"instance": None}, "Expected `str`, got `null`"),
    (REJECT | {"accepted": "yes"}, "Expected `bool`, got `str`"),
    ({"type": "session_extended", "iterations": "3"}, "Expected `int`, got `str`"),
    ({"type": "session_extended", "iterations": 10**18}, "--iterations must be from 1 to 1000"),
    ({"type": "session_extended", "iterations": -1}, "--iterations must be from 1 to 1000"),
    ({"type": "session_extended"}, "nothing to extend by"),
    ({"type": "measure_asked", "attempt": ATTEMPT, "devices": "all"}, "Expected `array`, got `str`"),
    (REJECT | {"attempt": "../../etc/passwd"}, "no attempt '../../etc/passwd' in this session"),
    (REJECT | {"attempt": "softmax#1/\x1b[2J"}, "the attempt has control characters"),
    (REJECT | {"attempt": "x" * 1_000_000}, "the attempt is longer than 2000 characters"),
    (REJECT | {"attempt": "softmax#1/" + "9" * 1000}, "no attempt 'softmax#1/999"),
    ({"type": "paused", "instance": "../x"}, "no instance '../x' in this session; nearest: softmax#1"),
    ({"type": "candidate_withdrawn", "attempt": "none"}, "no instance 'none'"),
    ({"type": "agent_left", "instance": INSTANCE}, "takes no candidates of agents"),
    (HINT | {"text": "x" * 1_000_000}, "the hint is longer than 2000 characters"),
    (HINT | {"text": "\x1b]0;title\x07"}, "the hint has control characters"),
    (HINT | {"by": "\x00"}, "the name of the person has control characters"),
    (REJECT | {"why": "x" * 1_000_000}, "the reason is longer than 2000 characters"),
    (REJECT | {"why": "\x9b2J"}, "the reason has control characters"),
    ({"type": "session_titled", "title": "a\nb"}, "write it as one line"),
    ({"type": "session_titled", "title": "x" * 1_000_000}, "the title has 1000000 characters"),
    ({"type": "device_lent", "device": "\x1b"}, "the device has control characters"),
    ({"type": "instance_forked", "base": ATTEMPT, "source": " \n"}, "the edit is empty"),
    ({"type": "instance_forked", "base": ATTEMPT, "hint": "x" * 2001}, "the hint is longer than"),
    ({"token": 7, **HINT}, "wrong token"),
    ({"token": "guess", "type": "explode"}, "wrong token"),
    ([HINT], "not a command"),
]  # fmt: skip
"""Lines that no engine may follow, each with words of its answer."""


def test_odd_lines_are_refused_in_one_line_and_change_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    stored.stopped(home)
    events = journal_of(home, stored.FIRST).events
    state, followed = fold(events), list[Command]()
    received = asyncio.run(answers(state, [line for line, _ in ODD], followed))
    for (line, words), answer in zip(ODD, received, strict=True):
        assert not answer["ok"], line
        assert words in answer["error"], line
        assert answer["error"].isprintable(), line
        assert len(answer["error"]) < 600, line
    assert followed == []
    assert fold(events) == state


def test_command_over_the_socket_arrives_whole(tmp_path: Path) -> None:
    home = Home(tmp_path)
    stored.stopped(home)
    state, followed = fold(journal_of(home, stored.FIRST).events), list[Command]()
    why = "two\nlines, and\ta tab"
    assert asyncio.run(answers(state, [REJECT | {"why": why, "by": "kim"}], followed))[0]["ok"]
    assert followed == [DecisionMade(attempt=ATTEMPT, accepted=False, why=why, by="kim")]
