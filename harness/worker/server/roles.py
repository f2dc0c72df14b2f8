"""The roles of workers. The fork server imports this module, so every worker starts with all roles imported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec
import torch

from harness.linux import syscalls
from harness.wire import limits
from harness.wire.channels.channel import Channel, ChannelClosed
from harness.wire.messages.server import HAS_CONTEXT, Spawn
from harness.worker.candidate.loading import confine
from harness.worker.compiler import backend, compiler
from harness.worker.full_sizes import full_size_worker
from harness.worker.guest import guest
from harness.worker.judge import judge
from harness.worker.kit import gpu
from harness.worker.recording import script_worker
from harness.worker.timer import timer
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.versions import build_launcher

_ELEMENTS = 1 << 24
"""64 MiB: little of a GPU's memory, but more than the first ways of its last-level cache hold."""
_ROUNDS = 3


def self_test(channel: Channel, spawn: Spawn) -> None:  # noqa: ARG001 -- every role has this signature
    """Answer `ok` if torch computes correctly after the fork: threads or a GPU runtime from before a fork break it."""
    torch.set_num_threads(1)
    product = torch.ones(64, 64) @ torch.ones(64, 64)
    threads = syscalls.thread_count()
    channel.send(b"ok" if float(product.sum()) == 64.0**3 and threads == 1 else b"wrong result after a fork")


def probe_gpu(channel: Channel, spawn: Spawn) -> None:
    """Report the GPU context, compute on the GPU, copy to it and back; answer `ok` or the problem.

    A GPU fault ends the process and a hang sends nothing; the engine reads both as unhealthy.
    """
    assert spawn.device is not None
    torch.set_num_threads(1)
    try:
        gpu.start(spawn.device)
        torch.empty(1, device="cuda")
        channel.send(HAS_CONTEXT)
        problem = _find_problem()
    except (RuntimeError, gpu.WrongGpu) as error:
        problem = str(error).partition("\n")[0]
    channel.send((problem or "ok").encode())


def _find_problem() -> str:
    """Compute with integers on the GPU and on the host, which give the same results; return what differs, or nothing.

    Raises what torch raises if the GPU fails.
    """
    device = torch.device("cuda", 0)
    host = torch.arange(_ELEMENTS, dtype=torch.int32)
    for addend in range(1, _ROUNDS + 1):
        back = host.to(device).mul_(3).add_(addend).cpu()
        wrong = int((back != host * 3 + addend).sum())
        if wrong:
            return f"{wrong} of {_ELEMENTS} sums came back wrong"
    return ""


def build_launchers(channel: Channel, spawn: Spawn) -> None:
    """Receive types of arguments, build their launchers into the scratch folder, answer `built`; without types, build Triton's
    driver module and the launcher of the kernel that warms each GPU process.
    """
    assert spawn.device is not None
    confine(spawn, limits.ADDRESS_SPACE_BYTES)
    wanted = msgspec.msgpack.decode(channel.receive().payload, type=tuple[tuple[str, ...], ...])
    if not wanted:
        warm.warm_gpu(spawn.device)
    for types in wanted:
        with suppress(Exception):  # a worker that needs this launcher builds it itself
            warm.start_gpu(spawn.device)
            build_launcher(types)
    channel.send(b"built")
    with suppress(ChannelClosed):  # the scratch folder is removed when this process ends
        channel.receive()


ROLES: dict[str, Callable[[Channel, Spawn], None]] = {
    "judge": judge.main,
    "guest": guest.main,
    "script": script_worker.main,
    "compiler": compiler.main,
    "backend": backend.main,
    "full_sizes": full_size_worker.main,
    "timer": timer.main,
    "health": probe_gpu,
    "launchers": build_launchers,
    "self-test": self_test,
}
