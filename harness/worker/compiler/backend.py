"""Role `backend`: compiles kernels from Triton IR. No foreign code runs here, so the binary is what the IR gives."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from harness.wire import limits
from harness.wire.channels.channel import ENCODER, Channel, ChannelClosed
from harness.wire.messages.compiler import KERNEL_IRS, Binary, KernelIr
from harness.wire.messages.server import Spawn
from harness.worker.candidate.loading import confine
from harness.worker.triton_hooks.stages import run_stages

from .capture import CompiledLaunch, compile_kernel


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer each `KernelIr` with its `Binary`, without files if it does not compile.

    Each kernel has a fork of its own, so nothing of one is left for the next, and a crash of the compiler is no answer.
    """
    confine(spawn, limits.COMPILE_ADDRESS_SPACE_BYTES, run_programs=True)
    while True:
        try:
            kernel = KERNEL_IRS.decode(channel.receive().payload)
        except ChannelClosed:
            return
        child = os.fork()
        if child == 0:
            try:
                channel.send(ENCODER.encode(_compile(kernel, Path(spawn.scratch))))
                os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            channel.send(ENCODER.encode(Binary()))


def _compile(kernel: KernelIr, scratch: Path) -> Binary:
    """Compile a kernel; a binary without files if that fails.

    The candidate's process then compiles it and reports the error.
    """
    launch, began = CompiledLaunch("", 0), time.perf_counter()
    with suppress(Exception):  # the candidate's process compiles it again, and reports the error
        compile_kernel(lambda: run_stages(kernel, scratch), launch)
        files, metadata = launch.compiled
        return Binary(files, metadata, launch.log, time.perf_counter() - began)
    return Binary()
