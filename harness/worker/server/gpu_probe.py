"""Role `health`: computes on the GPU, copies to it and back, and answers `ok` or the problem."""

from __future__ import annotations

import torch

from harness.wire.channels.channel import Channel
from harness.wire.messages.server import Spawn
from harness.worker.kit import gpu

_ELEMENTS = 1 << 24
"""64 MiB: little of a GPU's memory, but more than the first ways of its last-level cache hold."""
_ROUNDS = 3


def main(channel: Channel, spawn: Spawn) -> None:
    """Send one frame. A GPU fault ends the process and a hang sends nothing; the engine reads both as unhealthy."""
    assert spawn.device is not None
    torch.set_num_threads(1)
    try:
        gpu.start(spawn.device)
        problem = _find_problem()
    except (RuntimeError, gpu.WrongGpu) as error:
        problem = str(error).partition("\n")[0]
    channel.send((problem or "ok").encode())


def _find_problem() -> str:
    """Returns what differs, empty if nothing does. Integers give the same result on every GPU."""
    device = torch.device("cuda", 0)
    host = torch.arange(_ELEMENTS, dtype=torch.int32)
    for addend in range(1, _ROUNDS + 1):
        back = host.to(device).mul_(3).add_(addend).cpu()
        wrong = int((back != host * 3 + addend).sum())
        if wrong:
            return f"{wrong} of {_ELEMENTS} sums came back wrong"
    return ""
