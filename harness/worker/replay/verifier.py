"""The verifier: a sandboxed process that replays records of calls with the candidate's kernels, without its host code."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import torch

from harness.hardware.targets import target
from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import Hello
from harness.wire.records import View
from harness.wire.server_messages import Spawn
from harness.wire.verifier_messages import (
    VERIFIER_REQUESTS,
    NotReplayed,
    Replay,
    Replayed,
    ReplayedOutput,
    Study,
    VerifierReport,
)
from harness.worker.candidate.loading import confine
from harness.worker.interpreter import interpreter
from harness.worker.interpreter.case_traffic import case_traffic
from harness.worker.kit import arena, candidate_trace

from .kernels_only import NotAKernel
from .replay_endings import Diverged, ProgramsWait, Refused
from .replayer import Replayer


def main(channel: Channel, spawn: Spawn) -> None:
    """Serve one judge until it closes the channel."""
    channel.send(ENCODER.encode(Hello(sandbox=confine(spawn, limits.ADDRESS_SPACE_BYTES))))
    replayer: Replayer | None = None
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = VERIFIER_REQUESTS.decode(frame.payload)
        if isinstance(request, Study):
            interpreter.prepare(target(request.target))
            file = str(Path(spawn.scratch) / candidate_trace.NAME)
            replayer = Replayer(request.source, file, request.allowed)
        else:
            assert replayer is not None
            channel.send(ENCODER.encode(_replay(replayer, request, frame.descriptors[0])))


def _replay(replayer: Replayer, request: Replay, descriptor: int) -> VerifierReport:
    arguments = arena.open_arguments(descriptor, request.arena_bytes, request.arguments)
    os.close(descriptor)
    inputs = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    try:
        observation = replayer.run(
            request.record, inputs, backwards=request.backwards, zero_lanes=request.zero_lanes
        )
        outputs = tuple(_output(replayer, view) for view in request.record.returned)
    except Diverged:
        return NotReplayed(kind="diverged", message="Python read values that these inputs do not give")
    except ProgramsWait:
        return NotReplayed(kind="waits", message="programs wait for programs with lower numbers")
    except NotAKernel as reason:
        return NotReplayed(kind="unable", message=str(reason), line=reason.line)
    except Refused as refused:
        return NotReplayed(kind="refused", message=str(refused), error_kind=refused.kind, line=refused.line)
    except Exception as error:  # noqa: BLE001 (a kernel may raise here, though it did not in the guest)
        traceback.print_exc()
        explained = candidate_trace.explain(error, Path(candidate_trace.NAME))
        return NotReplayed(kind="unable", message=explained.message, line=explained.line)
    return Replayed(
        outputs=outputs,
        kernels=tuple(dict.fromkeys(launch.kernel for launch in observation.launches)),
        traffic=case_traffic(request.case, observation),
        unsupported=observation.unsupported or "",
        touched=replayer.touched(),
    )


def _output(replayer: Replayer, view: View) -> ReplayedOutput:
    tensor, origins = replayer.output(view)
    first = view.offset * tensor.element_size()
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True))
    return ReplayedOutput(
        dtype=view.dtype,
        shape=view.shape,
        data=arena.storage_bytes(tensor) if tensor.numel() else b"",
        origins=origins,
        storage=view.storage,
        first_byte=first,
        end_byte=first + (last + 1) * tensor.element_size() if tensor.numel() else first,
    )
