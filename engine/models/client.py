"""The seam between the agents and a language model: what goes in, what comes out, who answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Protocol

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


Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Wait = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a model may take, each limit apart (seconds), and how often it is asked again."""

    connect_s: Seconds = 15.0
    first_token_s: Seconds = 300.0
    """From the request to the first word of reasoning or text."""
    silence_s: Seconds = 120.0
    """Between two signs of life of a stream that has begun to speak."""
    reply_s: Seconds = 1800.0
    tries: Annotated[int, msgspec.Meta(ge=1, le=100)] = 6
    wait_low_s: Wait = 1.0
    """Between tries, at least; a server's retry-after counts where it is longer."""
    wait_high_s: Wait = 60.0


class Client(Protocol):
    """One model behind one account; safe to share between agents of one event loop."""

    model: str
    """As a person names it: `anthropic:NAME`, `openai:NAME@URL`, `azure:DEPLOYMENT`, `recorded:NAME`."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """One try; a `ModelError` says why there is no reply. Pieces come in order, their sum is the reply."""
        ...

    async def close(self) -> None:
        """Let go of connections. The client is not used afterwards."""
        ...
