"""Role `launchers`: builds Triton's driver module and its launchers for given argument types. Runs no candidate code."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import torch

from harness.linux import syscalls
from harness.sandbox import sandbox
from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.server_messages import Spawn
from harness.worker.candidate.loading import close_doors
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.versions import build_launcher

WANTED: msgspec.msgpack.Decoder[tuple[tuple[str, ...], ...]] = msgspec.msgpack.Decoder(
    tuple[tuple[str, ...], ...]
)


def main(channel: Channel, spawn: Spawn) -> None:
    """Receive the wanted types, build what can be built into the scratch folder, answer `built`."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    assert spawn.device is not None
    close_doors()
    sandbox.apply(
        Path(spawn.scratch), spawn.cpu_limit_s, limits.ADDRESS_SPACE_BYTES, run_programs=False, gpu=True
    )
    wanted = WANTED.decode(channel.receive().payload)
    warm.warm_gpu(spawn.device)
    for types in wanted:
        with suppress(Exception):  # a worker that needs this launcher builds it itself
            build_launcher(types)
    channel.send(b"built")
    with suppress(ChannelClosed):  # the scratch folder is removed when this process ends
        channel.receive()
