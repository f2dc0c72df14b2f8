"""Asks once what a GPU tells of itself, for those who watch nothing."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from harness.linux.process_environment import PROJECT_ROOT, worker_environment
from harness.wire.latency import DeviceState

from .samples import REPLIES, AskState, StateTold

_ASK_S = 30.0


def ask_once(address: str, kind: str) -> StateTold:
    """The device at this PCI address (`kind`: `cuda` or `hip`); without a `source` the note says what to install."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness.node.telemetry.sampler_process", address, kind],
            input=msgspec.json.encode(AskState()) + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=_ASK_S,
            env=worker_environment(interpret=False),
            cwd=PROJECT_ROOT,
        )
        reply = REPLIES.decode(done.stdout)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return StateTold(DeviceState(), "", "what asks the driver's library did not answer")
    assert isinstance(reply, StateTold)
    return reply
