"""The roles of workers. The fork server imports this module, so every worker starts with all roles imported."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.linux import syscalls
from harness.wire.channels.channel import Channel
from harness.wire.messages.server import Spawn
from harness.worker.compiler import compiling
from harness.worker.estimate import sampling_worker
from harness.worker.guest import guest
from harness.worker.judge import judge
from harness.worker.recording import script_worker
from harness.worker.replay import verifier
from harness.worker.timer import timer

from . import gpu_probe, launchers


def self_test(channel: Channel, spawn: Spawn) -> None:  # noqa: ARG001 -- every role has this signature
    """Answer `ok` if torch computes correctly after the fork: threads or a GPU runtime from before a fork break it."""
    torch.set_num_threads(1)
    product = torch.ones(64, 64) @ torch.ones(64, 64)
    threads = syscalls.thread_count()
    channel.send(b"ok" if float(product.sum()) == 64.0**3 and threads == 1 else b"wrong result after a fork")


ROLES: dict[str, Callable[[Channel, Spawn], None]] = {
    "judge": judge.main,
    "guest": guest.main,
    "verifier": verifier.main,
    "script": script_worker.main,
    "compiler": compiling.main,
    "sampler": sampling_worker.main,
    "timer": timer.main,
    "health": gpu_probe.main,
    "launchers": launchers.main,
    "self-test": self_test,
}
