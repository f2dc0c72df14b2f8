"""Role `launchers`: builds Triton's driver module and its launchers for given argument types. Runs no candidate code."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from harness.wire import limits
from harness.wire.channels.channel import Channel, ChannelClosed
from harness.wire.messages.server import Spawn
from harness.worker.candidate.loading import confine
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.versions import build_launcher

WANTED: msgspec.msgpack.Decoder[tuple[tuple[str, ...], ...]] = msgspec.msgpack.Decoder(
    tuple[tuple[str, ...], ...]
)


def main(channel: Channel, spawn: Spawn) -> None:
    """Receive the wanted types, build what can be built into the scratch folder, answer `built`."""
    assert spawn.device is not None
    confine(spawn, limits.ADDRESS_SPACE_BYTES)
    wanted = WANTED.decode(channel.receive().payload)
    warm.warm_gpu(spawn.device)
    for types in wanted:
        with suppress(Exception):  # a worker that needs this launcher builds it itself
            build_launcher(types)
    channel.send(b"built")
    with suppress(ChannelClosed):  # the scratch folder is removed when this process ends
        channel.receive()
