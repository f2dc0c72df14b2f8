"""The one form of a request to a worker and of an answer from it, whatever the worker does. Torch-free."""

from __future__ import annotations

import secrets
from typing import Generic, TypeVar

import msgspec

from harness.wire.calls.launch_tape import Tape
from harness.wire.channels.channel import ENCODER

from .compiler import Compile, CompileReport, KernelWanted, RanAtFullSizes, RunAtFullSizes
from .guest import (
    Alive,
    Ask,
    Broken,
    Call,
    Failed,
    Hello,
    LeftBehind,
    Load,
    Loaded,
    Returned,
    SharedAt,
)
from .timer import (
    Batch,
    BringBack,
    Done,
    Fetch,
    Prepare,
    Prepared,
    Renew,
    Rung,
    TakeSample,
    TapedCall,
)

Body = TypeVar("Body")
WorkerRequest = (
    Load
    | Call
    | Ask
    | Compile
    | RunAtFullSizes
    | SharedAt
    | Prepare
    | TakeSample
    | Rung
    | Batch
    | Renew
    | BringBack
    | Fetch
    | Tape
)
WorkerAnswer = (
    Hello
    | Alive
    | Failed
    | Broken
    | Loaded
    | Returned
    | LeftBehind
    | CompileReport
    | KernelWanted
    | RanAtFullSizes
    | Prepared
    | Done
    | TapedCall
)


class WorkerMessage(msgspec.Struct, Generic[Body], frozen=True):
    """A request, with which descriptors may come, or its answer: evidence only where foreign code runs in the worker."""

    nonce: str
    """An answer has the nonce of its request; empty for the greeting, which comes without a request."""
    body: Body
    seat: int = 0
    """A timer's seat that a request is for."""


RequestMessage = WorkerMessage[WorkerRequest]
AnswerMessage = WorkerMessage[WorkerAnswer]
REQUESTS: msgspec.msgpack.Decoder[RequestMessage] = msgspec.msgpack.Decoder(RequestMessage)
ANSWERS: msgspec.msgpack.Decoder[AnswerMessage] = msgspec.msgpack.Decoder(AnswerMessage)


def encode_request(request: WorkerRequest, seat: int = 0) -> tuple[str, bytes]:
    """Return a new nonce, and the message with the request."""
    nonce = secrets.token_hex(16)
    return nonce, ENCODER.encode(WorkerMessage(nonce, request, seat))
