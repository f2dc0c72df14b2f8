"""Role `launchers`: builds Triton's driver module and its launchers for given argument types. Runs no candidate code."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace

import msgspec
import triton

from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.server_messages import Spawn
from harness.worker.candidate.loading import confine
from harness.worker.kit import gpu

WANTED: msgspec.msgpack.Decoder[tuple[tuple[str, ...], ...]] = msgspec.msgpack.Decoder(
    tuple[tuple[str, ...], ...]
)


def main(channel: Channel, spawn: Spawn) -> None:
    """Receive the wanted types, build what can be built into the scratch folder, answer `built`."""
    assert spawn.device is not None
    confine(spawn, limits.ADDRESS_SPACE_BYTES)
    wanted = WANTED.decode(channel.receive().payload)
    gpu.warm(spawn.device)
    for types in wanted:
        with suppress(Exception):  # a worker that needs this launcher builds it itself
            _build(types)
    channel.send(b"built")
    with suppress(ChannelClosed):  # the scratch folder is removed when this process ends
        channel.receive()


def _build(types: tuple[str, ...]) -> None:
    """Uses internals of Triton's drivers (3.6). Triton 3.7 has one launcher for all kernels, so nothing is built."""
    driver = triton.runtime.driver.active
    source = SimpleNamespace(constants={}, signature=dict(enumerate(types)))
    metadata = SimpleNamespace(
        tensordesc_meta=None,
        num_ctas=1,
        warp_size=driver.get_current_target().warp_size,
        global_scratch_size=0,
        global_scratch_align=1,
        profile_scratch_size=0,
        profile_scratch_align=1,
        launch_cooperative_grid=False,
        launch_pdl=False,
    )
    driver.launcher_cls(source, metadata)
