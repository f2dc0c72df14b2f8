"""A reply's words on their way into the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.models import Piece
from sessions.errors import SessionsError
from sessions.events import ReplyPiece

PERIOD_S = 0.1
"""At most ten batches a second and call."""


class PieceBatches:
    """Gathers the pieces of one call and records them ten times a second, so that a fast stream does not flood the journal."""

    def __init__(self, call: str, record: Callable[[ReplyPiece], object]) -> None:
        self._call = call
        self._record = record
        self._pieces: list[Piece] = []
        self._timer: asyncio.TimerHandle | None = None
        self._refused: SessionsError | None = None

    def add(self, piece: Piece) -> None:
        """Take a piece in. Raises what the journal said when it refused an earlier batch."""
        if self._refused is not None:
            raise self._refused
        self._pieces.append(piece)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._flush_on_time)

    def drop(self) -> None:
        """Forget what was not recorded: the try is void."""
        self._pieces.clear()
        self._stop_timer()

    def flush(self) -> None:
        """Record what was gathered, one event a run of pieces of one kind."""
        self._stop_timer()
        pieces, self._pieces = self._pieces, []
        start = 0
        for end in range(1, len(pieces) + 1):
            if end == len(pieces) or pieces[end].kind != pieces[start].kind:
                words = "".join(piece.text for piece in pieces[start:end])
                self._record(ReplyPiece(call=self._call, kind=pieces[start].kind, text=words))
                start = end

    def _flush_on_time(self) -> None:
        # Nobody awaits a timer: the refusal goes to the next `add`, and the call's own end meets it as well.
        try:
            self.flush()
        except SessionsError as error:
            self._refused = error

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
