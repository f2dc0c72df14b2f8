"""The verifier: a sandboxed process that replays records of calls with the candidate's kernels, without its host code."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import torch

from harness.hardware.targets import target
from harness.wire import limits
from harness.wire.calls.records import View
from harness.wire.channels.channel import Channel
from harness.wire.messages.guest import Load, Loaded
from harness.wire.messages.requests import RequestMessage, WorkerAnswer
from harness.wire.messages.server import Spawn
from harness.wire.messages.verifier import NotReplayed, Replay, Replayed, ReplayedOutput
from harness.worker.candidate.loading import confine
from harness.worker.candidate.serving import serve
from harness.worker.interpreter import interpreter
from harness.worker.interpreter.case_traffic import case_traffic
from harness.worker.kit import arena, candidate_trace

from .kernels_only import NotAKernel
from .replay_endings import Diverged, ProgramsWait, Refused
from .replayer import Replayer


def main(channel: Channel, spawn: Spawn) -> None:
    """Serve one judge until it closes the channel."""
    layers = confine(spawn, limits.ADDRESS_SPACE_BYTES)
    serve(channel, layers, Verifier(Path(spawn.scratch) / candidate_trace.NAME).answer)


class Verifier:
    """Replays records of one candidate."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._replayer: Replayer | None = None

    def answer(self, message: RequestMessage, descriptors: tuple[int, ...]) -> WorkerAnswer:
        """The answer to one request."""
        match message.request:
            case Load(source=source, target=target_name, allowed=allowed):
                interpreter.prepare(target(target_name))
                self._replayer = Replayer(source, str(self._file), allowed)
                return Loaded(parameters={})
            case Replay() as request if self._replayer is not None:
                return _replay(self._replayer, request, descriptors[0])
            case other:
                raise TypeError(f"a verifier has no answer to {type(other).__name__} here")


def _replay(replayer: Replayer, request: Replay, descriptor: int) -> Replayed | NotReplayed:
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
