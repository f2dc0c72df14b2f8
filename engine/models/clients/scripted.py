"""Clients without a provider: one that answers from a script, for tests and for trying a method, and one that is never asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from engine.errors import ModelError
from engine.models.client import Piece, Reply, Request

PIECE_CHARACTERS = 24


class ScriptedClient:
    """Answers requests from a script in order, and keeps the requests in `requests`.

    The script is a sequence of replies and errors, or a function of the request. A request after the end of the
    sequence raises `IndexError`.
    """

    def __init__(
        self, *script: Reply | ModelError, answer: Callable[[Request], Reply | ModelError] | None = None
    ) -> None:
        self.model = "scripted:test"
        self.requests: list[Request] = []
        self._script = script
        self._answer = answer

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        started = time.monotonic()
        self.requests.append(request)
        answer = self._answer(request) if self._answer else self._script[len(self.requests) - 1]
        if isinstance(answer, ModelError):
            raise answer
        for piece in pieces_of(answer):
            on_piece(piece)
        return msgspec.structs.replace(
            answer, seconds=time.monotonic() - started, temperature=request.temperature
        )

    async def close(self) -> None:
        """See `Client`; it has no connections."""


class NoModel:
    """A client that is never asked."""

    model = "none"
    """The model name of a session without a model."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. A call is a bug of the method."""
        raise RuntimeError(f"a method that asks no model asked for {request.key.role}")

    async def close(self) -> None:
        """See `Client`."""


def says(text: str, *, reasoning: str = "", stop_reason: str = "end") -> Reply:
    """Returns a reply for a script."""
    return Reply(text=text, reasoning=reasoning, stop_reason=stop_reason)


def pieces_of(reply: Reply) -> Iterator[Piece]:
    """Yield a complete reply in pieces, as a stream would: reasoning first, some characters at a time."""
    for kind, words in (("reasoning", reply.reasoning), ("text", reply.text)):
        for start in range(0, len(words), PIECE_CHARACTERS):
            yield Piece(kind, words[start : start + PIECE_CHARACTERS])
