"""Role `launchers`: builds Triton's driver module and launchers by the types of their arguments, and runs nothing of anybody's."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import torch
import triton

from harness.linux import syscalls
from harness.sandbox import sandbox
from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.server_messages import Spawn
from harness.worker.candidate.loading import close_doors
from harness.worker.kit import gpu

WANTED: msgspec.msgpack.Decoder[tuple[tuple[str, ...], ...]] = msgspec.msgpack.Decoder(
    tuple[tuple[str, ...], ...]
)


def main(channel: Channel, spawn: Spawn) -> None:
    """Answers one frame, the wanted types, when what can be built stands in the scratch folder."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    assert spawn.device is not None
    close_doors()
    sandbox.apply(
        Path(spawn.scratch), spawn.cpu_limit_s, limits.ADDRESS_SPACE_BYTES, run_programs=False, gpu=True
    )
    wanted = WANTED.decode(channel.receive().payload)
    gpu.warm(spawn.device)
    for types in wanted:
        # Whatever Triton says of types that it does not launch with: who needs such a launcher builds it.
        with suppress(Exception):
            _build(types)
    channel.send(b"built")
    with suppress(ChannelClosed):  # the scratch folder goes with this process
        channel.receive()


def _build(types: tuple[str, ...]) -> None:
    """Touches the internals of Triton's drivers (3.6; in 3.7 one launcher serves all kernels, and nothing is built)."""
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
