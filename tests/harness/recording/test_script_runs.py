"""Protects the judge's line to a script worker: a slow script is no failure of ours, and a slow start is no script's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from harness.wire import limits
from harness.wire.channels.channel import ENCODER, Channel, ChannelClosed
from harness.wire.messages.guest import Hello
from harness.wire.messages.script import RanScript, Script
from harness.worker.oracle.problem import BadProblem
from harness.worker.oracle.script_runs import ScriptRuns, SlowScript

SCRIPT = Script(reference="", test="", entry_points=())


@pytest.fixture
def line() -> Iterator[tuple[Channel, Channel]]:
    """The ends of the judge and of the script worker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ends = Channel(ours), Channel(theirs)
    yield ends
    for end in ends:
        end.close()


def test_a_process_that_does_not_get_ready_is_no_slow_script(
    line: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GUEST_START_S", 0.01)
    script_runs = ScriptRuns()
    script_runs.attach(line[0], "gfx942")
    with pytest.raises(BadProblem, match="was not ready after") as raised:
        script_runs.recorded("task", SCRIPT, 1, 0)
    assert not isinstance(raised.value, SlowScript)
    monkeypatch.setattr(limits, "GUEST_START_S", 60.0)
    with pytest.raises(BadProblem, match="was not ready after"):  # at once, not after the wait again
        script_runs.recorded("task", SCRIPT, 2, 0)


def test_late_report_of_a_slow_script_never_passes_for_the_report_on_the_next_request(
    line: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SCRIPT_S", 0.01)
    ours, theirs = line
    theirs.send(ENCODER.encode(Hello(sandbox=())))
    script_runs = ScriptRuns()
    script_runs.attach(ours, "gfx942")
    with pytest.raises(SlowScript):
        script_runs.recorded("task", SCRIPT, 1, 0)
    with suppress(ChannelClosed):
        theirs.send(ENCODER.encode(RanScript(calls=(), error="of seed 1")))
    with pytest.raises(SlowScript):
        script_runs.recorded("task", SCRIPT, 2, 0)
