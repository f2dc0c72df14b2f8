"""Calls of models: prompts, the pieces of an answer, retries, tokens."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from sessions.names import AttemptKey, CallKey

from .base import DurableEvent, Event


class Role(StrEnum):
    """The role of the model in a call."""

    GENERATOR = "generator"
    REFLECTOR = "reflector"
    OPTIMIZER = "optimizer"


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call as the provider counted them; unknown counts are `None`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of `input_tokens` that was read from the provider's cache."""
    cache_write_tokens: int | None = None
    """Part of `input_tokens` that was written to the cache; some providers have a separate price for it."""


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str


AGENT_PROGRAM = "agent"
"""Endpoint of calls that are output of an agent's program: it asks its models itself, and says what it spent at its end."""


class ServedModel(msgspec.Struct, frozen=True):
    """The model that answered a call, as far as server and request say it."""

    model: str = ""
    """The id that the server says it served, for example with the date of a version; empty if it says none."""
    endpoint: str = ""
    """Protocol of the request: `messages`, `responses` or `chat`; `AGENT_PROGRAM` for the output of an agent's program."""
    parameters: dict[str, Any] = {}
    """Every parameter that was sent besides the prompt: temperature, longest reply, thinking, effort."""


class CallStarted(Event, frozen=True, kw_only=True, tag="call_started"):
    """A request is sent to the model."""

    call: CallKey
    """`softmax#2/7/generator/1`: attempt, role, number of the role's call in the attempt."""
    attempt: AttemptKey
    role: Role
    model: str
    messages: tuple[Message, ...]
    """The messages exactly as sent."""
    most_tokens: int = 0
    """The most that it can use. Budgets count it in full if the try may be billed and its usage is unknown."""
    most_usd: float = 0.0


class ReplyPiece(Event, frozen=True, kw_only=True, tag="reply_piece"):
    """A batch of streamed text; not synced. A retry starts again: see `CallRetried`."""

    call: CallKey
    kind: str
    """`reasoning` or `text`."""
    text: str


class CallRetried(Event, frozen=True, kw_only=True, tag="call_retried"):
    """A try failed and is repeated; the pieces streamed so far are void."""

    call: CallKey
    reason: str
    """`rate_limited`, `server_error`, `connection`, `cut`, `silent`, `garbage`, `overloaded`, ..."""
    message: str
    wait_s: float
    retry: int
    """1 for the first retry."""
    billed: bool = False
    """True if the provider may bill the failed try: it ended after the reply had begun. Budgets count it in full."""


class CallFinished(DurableEvent, frozen=True, kw_only=True, tag="call_finished"):
    """A complete reply arrived. It is never requested again."""

    call: CallKey
    text: str
    reasoning: str = ""
    stop_reason: str = ""
    """`end`, `truncated`, or the provider's own word if neither fits."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """Cost by the configured prices; `None` if no price is known."""
    seconds: float = 0.0
    temperature: float | None = None
    """The value that was sent; `None` if the model refused the parameter."""
    served: ServedModel | None = None
    """`None` for a recording. The date of the call is the event's `wall`."""


class CallFailed(DurableEvent, frozen=True, kw_only=True, tag="call_failed"):
    """No reply will come: all tries failed, or a retry cannot help."""

    call: CallKey
    reason: str
    """`bad_key`, `unknown_model`, `bad_request`, `gave_up`, `recording_exhausted`, ..."""
    message: str
    cause: str = ""
    """With `gave_up`, the reason of the last try, as in `CallRetried`."""
    billed: bool = False
    """See `CallRetried`; about the last try."""

    @property
    def too_long(self) -> bool:
        """True if the prompt did not fit the model's context."""
        return self.reason == "context_too_long"
