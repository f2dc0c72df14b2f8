"""The seam between the agents and a language model: what goes in, what comes out, who answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from sessions.events import Message, Role, Usage


class CallKey(msgspec.Struct, frozen=True):
    """Which call of a session a request is; a recording finds its reply by it."""

    task: str
    """Full name, `suite/task`."""
    instance: int
    """Of a recording the chain, which is the instance's own number unless the session plays from a later chain on."""
    attempt: int
    """Number within the instance, from 1."""
    role: Role
    n: int
    """Number of this role's call within the attempt, from 1."""

    def __str__(self) -> str:
        return f"{self.task}#{self.instance}/{self.attempt}/{self.role}/{self.n}"


class Request(msgspec.Struct, frozen=True):
    """One request to a model."""

    key: CallKey
    messages: tuple[Message, ...]
    """System messages first, then `user` and `assistant` in turn."""
    temperature: float = 1.0
    max_output_tokens: int = 32_000
    """Reasoning included. A model that allows less is asked for what it allows."""


class Piece(msgspec.Struct, frozen=True):
    """Some streamed words."""

    kind: str
    """`reasoning` or `text`."""
    text: str


class Reply(msgspec.Struct, frozen=True):
    """A whole reply. The text may be empty: that is the model's answer, and unusable."""

    text: str
    reasoning: str = ""
    stop_reason: str = "end"
    """`end`, `truncated`, or the provider's own word where neither fits."""
    usage: Usage = Usage()
    seconds: float = 0.0
    """From the request to the last word, without the waits between tries."""
    temperature: float | None = None
    """As sent; `None` when the model refused one and its default ruled, or when it is not known (a recording)."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a model may take, each limit apart (seconds), and how often it is asked again."""

    connect_s: float = 15.0
    first_token_s: float = 300.0
    """From the request to the first word of reasoning or text."""
    silence_s: float = 120.0
    """Between two signs of life of a stream that has begun to speak."""
    reply_s: float = 1800.0
    tries: int = 6
    wait_low_s: float = 1.0
    wait_high_s: float = 60.0


class Client(Protocol):
    """One model behind one account; safe to share between agents of one event loop."""

    model: str
    """As a person names it: `anthropic:NAME`, `openai:NAME@URL`, `recorded:NAME`."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """One try; a `ModelError` says why there is no reply. Pieces come in order, their sum is the reply."""
        ...

    async def close(self) -> None:
        """Let go of connections. The client is not used afterwards."""
        ...
