"""The client of a session with a method that asks no model."""

from __future__ import annotations

from collections.abc import Callable

from engine.models.client import Piece, Reply, Request


class NoModel:
    """A client that is never asked."""

    model = "none"
    """The model name of a session without a model."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. A call is a bug of the method."""
        raise RuntimeError(f"a method that asks no model asked for {request.key.role}")

    async def close(self) -> None:
        """See `Client`."""
