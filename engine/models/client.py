"""The interface between the agents and a language model: request, reply, limits and client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Protocol, runtime_checkable

import msgspec

from sessions.events import Message, Role, ServedModel, Usage

LONGEST_REPLY = 32_000
"""Tokens of output that a request allows, with reasoning."""


class CallKey(msgspec.Struct, frozen=True):
    """Identifies one call of a session; a recording finds its reply by it."""

    task: str
    """Full name, `suite/task`."""
    instance: int
    """The chain if a recording plays; it is the instance number unless the session starts at a later chain."""
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
    """1 is GEAK's value: parallel instances must differ."""
    top_p: float | None = None
    """`None` is not sent."""
    effort: str = ""
    """Effort of reasoning, in the provider's words; empty: not sent."""
    max_output_tokens: int = LONGEST_REPLY
    """Includes reasoning. A model with a lower limit is asked for its limit."""


class Piece(msgspec.Struct, frozen=True):
    """A streamed part of a reply."""

    kind: str
    """`reasoning` or `text`."""
    text: str


class Reply(msgspec.Struct, frozen=True):
    """A complete reply. Without text it is unusable."""

    text: str
    reasoning: str = ""
    stop_reason: str = "end"
    """`end`, `truncated`, `cut at N bytes` (`limits.reply_bytes`), or the provider's own word if none fits."""
    usage: Usage = Usage()
    seconds: float = 0.0
    """From the request to the last piece, without the waits between tries."""
    temperature: float | None = None
    """The value that was sent; `None` if the model refused the parameter, or if unknown (a recording)."""
    served: ServedModel | None = None
    """`None` if no server answered (a recording)."""

    @property
    def is_cut(self) -> bool:
        """True if the client ended the reply at its size limit. The reply is paid for, so it is not asked for again."""
        return self.stop_reason.startswith(CUT)


CUT = "cut at "
"""How the stop reason of a reply begins that the client ended."""


def cut_at(limit: int) -> str:
    """Returns the stop reason of a reply that the client ended at this number of bytes."""
    return f"{CUT}{limit:,} bytes"


Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Wait = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time limits of a model in seconds, the size of a reply, and the number of tries."""

    connect_s: Seconds = 15.0
    first_token_s: Seconds = 300.0
    """From the request to the first piece of reasoning or text."""
    silence_s: Seconds = 120.0
    """Longest pause between two items of a stream after its first piece."""
    reply_s: Seconds = 1800.0
    reply_bytes: Annotated[int, msgspec.Meta(ge=1000, le=100_000_000)] = 2_000_000
    """Size of a reply with its reasoning. The rest of a longer reply is not read."""
    tries: Annotated[int, msgspec.Meta(ge=1, le=100)] = 6
    wait_low_s: Wait = 1.0
    """Shortest wait between tries; a longer retry-after of the server replaces it."""
    wait_high_s: Wait = 60.0


class Client(Protocol):
    """One model behind one account; agents of one event loop may share it."""

    model: str
    """Name as people write it: `anthropic:NAME`, `openai:NAME@URL`, `azure:DEPLOYMENT`, `recorded:NAME`."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """Make one try. The pieces come in order and together make up the reply.

        A `ModelError` says why there is no reply.
        """

    async def close(self) -> None:
        """Close the connections. The client is not used again."""


@runtime_checkable
class Checkable(Protocol):
    """A client that can ask its server about the model without cost."""

    model: str

    async def check(self) -> None:
        """Ask the server, for a few seconds at most. A `ModelError` says why it would refuse every call."""
