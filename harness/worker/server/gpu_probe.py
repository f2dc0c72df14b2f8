"""Role `health`: allocates on the GPU, computes, copies there and back, and says `ok` or what differs."""

from __future__ import annotations

import torch

from harness.wire.channel import Channel
from harness.wire.server_messages import Spawn
from harness.worker.kit import gpu

_ELEMENTS = 1 << 24
"""64 MiB: more than stays in a last-level cache's first ways, little beside what a GPU has."""
_ROUNDS = 3


def main(channel: Channel, spawn: Spawn) -> None:
    """Answers one frame. A GPU that faults ends the process, one that hangs says nothing: both are answers too."""
    assert spawn.device is not None
    torch.set_num_threads(1)
    try:
        gpu.start(spawn.device)
        said = _computes()
    except (RuntimeError, gpu.WrongGpu) as error:
        said = str(error).partition("\n")[0]
    channel.send((said or "ok").encode())


def _computes() -> str:
    """What is wrong; empty when nothing is. Integers, so that the answer is exact on every GPU."""
    here = torch.device("cuda", 0)
    host = torch.arange(_ELEMENTS, dtype=torch.int32)
    for turn in range(1, _ROUNDS + 1):
        back = host.to(here).mul_(3).add_(turn).cpu()
        wrong = int((back != host * 3 + turn).sum())
        if wrong:
            return f"{wrong} of {_ELEMENTS} sums came back wrong"
    return ""
