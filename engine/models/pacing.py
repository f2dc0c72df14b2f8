"""Limits of one provider: requests at the same time.

Their number is halved when the provider refuses a request as too many, and grows by one after as many replies as it
allows requests at the same time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from engine.errors import TryAgain

from .client import Client, Piece, Reply, Request
from .spec import split_url

TOO_MANY = ("rate_limited", "overloaded")
"""Reasons of a failed try that say that the provider gets too many requests."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one provider."""

    concurrency: Count = 16
    """Requests at the same time."""


class Gate:
    """Admits requests to one provider, in the order in which they come."""

    def __init__(self, pace: Pace) -> None:
        self.concurrency = pace.concurrency
        """Requests that it admits at the same time, now."""
        self._most = pace.concurrency
        self._active = 0
        self._replies = 0
        """Replies since `concurrency` changed."""
        self._shrunk = 0
        self._queue: deque[asyncio.Future[int]] = deque()

    async def enter(self) -> int:
        """Wait until a request may be sent; returns how often the limit had shrunk then, for `leave`."""
        admitted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queue.append(admitted)
        self._admit()
        try:
            return await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self.leave(admitted.result())
            raise

    def leave(self, sent: int, *, replied: bool = False, too_many: bool = False) -> None:
        """The request that `enter` admitted as `sent` ended: with a reply, refused as `too_many`, or otherwise."""
        self._active -= 1
        # Requests that were sent together are refused together, and shrink the limit once.
        if too_many and sent == self._shrunk:
            self.concurrency = max(1, self.concurrency // 2)
            self._shrunk += 1
            self._replies = 0
        elif replied:
            self._replies += 1
            if self._replies >= self.concurrency < self._most:
                self.concurrency += 1
                self._replies = 0
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._active < self.concurrency:
            admitted = self._queue.popleft()
            if not admitted.done():
                self._active += 1
                admitted.set_result(self._shrunk)


class PacedClient:
    """A client for one request, whose tries keep to the limits of the provider."""

    def __init__(self, client: Client, gate: Gate) -> None:
        self.model = client.model
        self._client = client
        self._gate = gate
        self._sent: int | None = None

    @property
    def is_sent(self) -> bool:
        """True while a try is admitted or in progress; false between two tries."""
        return self._sent is not None

    async def enter(self) -> None:
        """Wait until a try may be sent; returns at once if the next try was admitted before."""
        if self._sent is None:
            self._sent = await self._gate.enter()

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        await self.enter()
        try:
            reply = await self._client.reply(request, on_piece)
        except TryAgain as error:
            self._leave(too_many=error.reason in TOO_MANY)
            raise
        self._leave(replied=True)
        return reply

    async def close(self) -> None:
        """Give up the place of a try that was admitted. The client stays open."""
        self._leave()

    def _leave(self, *, replied: bool = False, too_many: bool = False) -> None:
        sent, self._sent = self._sent, None
        if sent is not None:
            self._gate.leave(sent, replied=replied, too_many=too_many)


class Gates:
    """One gate for each provider."""

    def __init__(self, paces: Mapping[str, Pace]) -> None:
        """`paces` maps a provider, as `provider_of` names it, to its limits."""
        self._paces = paces
        self._gates: dict[str, Gate] = {}

    def paced(self, client: Client) -> PacedClient:
        """Returns a client for one request."""
        provider = provider_of(client.model)
        if provider not in self._gates:
            self._gates[provider] = Gate(self._paces.get(provider, Pace()))
        return PacedClient(client, self._gates[provider])


def provider_of(model: str) -> str:
    """Returns the provider of a model: `anthropic`, or `openai@URL` for another server."""
    provider, _, rest = model.partition(":")
    _, url = split_url(rest)
    return f"{provider}@{url}" if url else provider
