"""Limits of one provider: requests at the same time, requests per minute and tokens per minute.

The number of requests at the same time is halved when the provider refuses a request as too many, and grows by one
after as many replies as it allows requests at the same time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from engine.errors import TryAgain

from .bookkeeping import used_tokens
from .client import Client, Piece, Reply, Request
from .spec import split_url

MINUTE_S = 60.0
TOO_MANY = ("rate_limited", "overloaded")
"""Reasons of a failed try that say that the provider gets too many requests."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one provider."""

    concurrency: Count = 16
    """Requests at the same time."""
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    """Prompt and longest reply count when a request is sent, the tokens that it used afterwards."""


@dataclass(slots=True, eq=False)
class Sent:
    """A request of the last minute."""

    at: float
    tokens: int
    limit_number: int
    """How often the limit had shrunk when the request was sent."""


class Gate:
    """Admits requests to one provider, in the order in which they come."""

    def __init__(self, pace: Pace, *, minute_s: float = MINUTE_S) -> None:
        self.concurrency = pace.concurrency
        """Requests that it admits at the same time, now."""
        self._pace = pace
        self._minute_s = minute_s
        self._active = 0
        self._replies = 0
        """Replies since `concurrency` changed."""
        self._shrunk = 0
        self._recent: deque[Sent] = deque()
        self._queue: deque[tuple[int, asyncio.Future[Sent]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, tokens: int) -> Sent:
        """Wait until a request of at most this many tokens may be sent."""
        admitted: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, admitted))
        self._admit()
        try:
            return await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self.leave(admitted.result())
            raise

    def leave(self, sent: Sent, *, tokens: int | None = None, too_many: bool = False) -> None:
        """The request ended: with a reply of `tokens`, refused as `too_many`, or otherwise."""
        self._active -= 1
        if too_many:
            self._shrink(sent)
        elif tokens is not None:
            sent.tokens = tokens
            self._grow()
        self._admit()

    def _shrink(self, sent: Sent) -> None:
        # Requests that were sent together are refused together, and shrink the limit once.
        if sent.limit_number == self._shrunk:
            self.concurrency = max(1, self.concurrency // 2)
            self._shrunk += 1
            self._replies = 0

    def _grow(self) -> None:
        self._replies += 1
        if self._replies >= self.concurrency < self._pace.concurrency:
            self.concurrency += 1
            self._replies = 0

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._queue and self._active < self.concurrency:
            tokens, admitted = self._queue[0]
            if not admitted.done():
                wait_s = self._wait(tokens, loop.time())
                if wait_s > 0:
                    self._timer = loop.call_later(wait_s, self._admit)
                    return
                sent = Sent(loop.time(), tokens, self._shrunk)
                self._recent.append(sent)
                self._active += 1
                admitted.set_result(sent)
            self._queue.popleft()

    def _wait(self, tokens: int, now: float) -> float:
        """Returns the seconds until the limits per minute may allow the request; 0 if they allow it now."""
        while self._recent and self._recent[0].at + self._minute_s <= now:
            self._recent.popleft()
        pace = self._pace
        full = pace.requests_per_minute is not None and len(self._recent) >= pace.requests_per_minute
        dear = (
            pace.tokens_per_minute is not None
            and sum(sent.tokens for sent in self._recent) + tokens > pace.tokens_per_minute
        )
        # A request that is larger than the limit is sent alone.
        return self._recent[0].at + self._minute_s - now if self._recent and (full or dear) else 0.0


class PacedClient:
    """A client for one request, whose tries keep to the limits of the provider."""

    def __init__(self, client: Client, gate: Gate, tokens: int) -> None:
        """`tokens` is the most that the request can use."""
        self.model = client.model
        self._client = client
        self._gate = gate
        self._tokens = tokens
        self._sent: Sent | None = None

    @property
    def is_sent(self) -> bool:
        """True while a try is admitted or in progress; false between two tries."""
        return self._sent is not None

    async def enter(self) -> None:
        """Wait until a try may be sent; returns at once if the next try was admitted before."""
        if self._sent is None:
            self._sent = await self._gate.enter(self._tokens)

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        await self.enter()
        try:
            reply = await self._client.reply(request, on_piece)
        except TryAgain as error:
            self._leave(too_many=error.reason in TOO_MANY)
            raise
        used = used_tokens(reply.usage)
        self._leave(tokens=self._tokens if used is None else used)
        return reply

    async def close(self) -> None:
        """Give up the place of a try that was admitted. The client stays open."""
        self._leave()

    def _leave(self, *, tokens: int | None = None, too_many: bool = False) -> None:
        sent, self._sent = self._sent, None
        if sent is not None:
            self._gate.leave(sent, tokens=tokens, too_many=too_many)


class Gates:
    """One gate for each provider."""

    def __init__(self, paces: Mapping[str, Pace]) -> None:
        """`paces` maps a provider, as `provider_of` names it, to its limits."""
        self._paces = paces
        self._gates: dict[str, Gate] = {}

    def paced(self, client: Client, tokens: int) -> PacedClient:
        """Returns a client for one request of at most `tokens` tokens."""
        provider = provider_of(client.model)
        if provider not in self._gates:
            self._gates[provider] = Gate(self._paces.get(provider, Pace()))
        return PacedClient(client, self._gates[provider], tokens)


def provider_of(model: str) -> str:
    """Returns the provider of a model: `anthropic`, or `openai@URL` for another server."""
    provider, _, rest = model.partition(":")
    _, url = split_url(rest)
    return f"{provider}@{url}" if url else provider
