"""The one form of a request to a worker and of an answer from it, whatever the worker does. Torch-free."""

from __future__ import annotations

import secrets

import msgspec

from harness.wire.channels.encoding import ENCODER

from .compiler import CompileReport
from .full_sizes import RanAtFullSizes, RunAtFullSizes
from .guest import Alive, Broken, Call, Compile, Failed, Farewell, Hello, LeftBehind, Load, Loaded, Returned
from .timer import (
    Batch,
    BringBack,
    Capture,
    Clear,
    Done,
    Fetch,
    Play,
    Prepare,
    Prepared,
    Reach,
    Record,
    Recorded,
    Renew,
    Sample,
    Sampled,
    TriedServing,
    TryServing,
)

WorkerRequest = (
    Load
    | Call
    | Farewell
    | Compile
    | RunAtFullSizes
    | Reach
    | Prepare
    | Sample
    | Capture
    | Batch
    | Renew
    | BringBack
    | Fetch
    | Record
    | Play
    | Clear
    | TryServing
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
    | RanAtFullSizes
    | Prepared
    | Sampled
    | Done
    | Recorded
    | TriedServing
)


class RequestMessage(msgspec.Struct, frozen=True):
    """A request. Descriptors may come with it."""

    nonce: str
    request: WorkerRequest
    seat: int = 0
    """A timer's seat that the request is for."""


class AnswerMessage(msgspec.Struct, frozen=True):
    """An answer; evidence only where foreign code runs in the worker."""

    nonce: str
    """The request's; empty for the greeting, which comes without a request."""
    answer: WorkerAnswer


REQUESTS: msgspec.msgpack.Decoder[RequestMessage] = msgspec.msgpack.Decoder(RequestMessage)
ANSWERS: msgspec.msgpack.Decoder[AnswerMessage] = msgspec.msgpack.Decoder(AnswerMessage)


def encode_request(request: WorkerRequest, seat: int = 0) -> tuple[str, bytes]:
    """Return a new nonce, and the message with the request."""
    nonce = secrets.token_hex(16)
    return nonce, ENCODER.encode(RequestMessage(nonce, request, seat))
