"""Protects the judge's line to a script worker: a slow script is no failure of ours, and the engine hears of each run."""

from __future__ import annotations

import socket

import pytest

from harness.wire import limits
from harness.wire.channels.channel import Channel
from harness.wire.messages.script import Script
from harness.worker.oracle.script_runs import ScriptRuns, SlowScript


def test_a_script_that_does_not_end_is_slow_and_its_run_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCRIPT_S", 0.01)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    runs: list[str] = []
    script_runs = ScriptRuns(lambda: runs.append("run"))
    script_runs.attach(Channel(ours), "gfx942")
    with pytest.raises(SlowScript, match="did not end within"):
        script_runs.recorded("task", Script(reference="", test="", entry_points=()), 1, 0)
    assert runs == ["run"]
    script_runs.detach()
    theirs.close()
