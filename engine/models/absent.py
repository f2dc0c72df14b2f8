"""No model: what a session of a method has that asks none."""

from __future__ import annotations

from collections.abc import Callable

from .client import Piece, Reply, Request


class NoModel:
    """A client that is never asked."""

    model = "none"
    """As which a session without a model goes."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`; being asked is a fault of the method's."""
        raise RuntimeError(f"a method that asks no model asked for {request.key.role}")

    async def close(self) -> None:
        """See `Client`."""
