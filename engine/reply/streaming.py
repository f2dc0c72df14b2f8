"""Records a reply's streamed pieces in the journal, in batches."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from operator import attrgetter

from engine.models import Piece
from sessions.errors import SessionsError
from sessions.events import ReplyPiece
from sessions.journal.masking import Masks

PERIOD_S = 0.1
"""At most ten batches per second for each call."""
MOST_BATCHES_PER_S = 1000
"""Limit for all calls together: each batch is an event for the journal and for every viewer."""


class Streams:
    """The calls with a reply that streams now."""

    def __init__(self) -> None:
        self.live = 0
        """Their number."""

    @property
    def period_s(self) -> float:
        """Seconds between two batches of a call."""
        return max(PERIOD_S, self.live / MOST_BATCHES_PER_S)


class PieceBatches:
    """Collects the pieces of one call and records them several times per second.

    A fast stream would otherwise flood the journal. Call `close` at the end.
    """

    def __init__(
        self, call: str, record: Callable[[ReplyPiece], object], streams: Streams, masks: Masks
    ) -> None:
        self._call = call
        self._record = record
        self._streams = streams
        streams.live += 1
        self._pieces: list[Piece] = []
        self._masks = masks
        self._held = defaultdict[str, str](str)
        """Text that may be the beginning of a key, by the kind of its pieces."""
        self._timer: asyncio.TimerHandle | None = None
        self._refused: SessionsError | None = None
        self.began = False
        """True if a piece of the current try has come."""

    def add(self, piece: Piece) -> None:
        """Add a piece. Raises the error of an earlier batch that the journal refused."""
        if self._refused is not None:
            raise self._refused
        self.began = True
        self._pieces.append(piece)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._streams.period_s, self._flush_on_time)

    def drop(self) -> None:
        """Discard the pieces that were not recorded: the try is void."""
        self.began = False
        self._pieces.clear()
        self._held.clear()
        self._stop_timer()

    def close(self) -> None:
        """The call is over: discard the pieces that were not recorded."""
        self.drop()
        self._streams.live -= 1

    def flush(self) -> None:
        """Record all pieces, because the reply has ended."""
        self._record_pieces()
        for kind, words in self._held.items():
            self._record_words(kind, self._masks.mask(words))
        self._held.clear()

    def _record_pieces(self) -> None:
        """Record the collected pieces without keys: one event for each run of pieces of one kind."""
        self._stop_timer()
        pieces, self._pieces = self._pieces, []
        for kind, run in groupby(pieces, key=attrgetter("kind")):
            text = self._held[kind] + "".join(piece.text for piece in run)
            masked, self._held[kind] = self._masks.mask_beginning(text)
            self._record_words(kind, masked)

    def _record_words(self, kind: str, words: str) -> None:
        if words:
            self._record(ReplyPiece(call=self._call, kind=kind, text=words))

    def _flush_on_time(self) -> None:
        # No caller awaits a timer: the next `add` raises the error.
        try:
            self._record_pieces()
        except SessionsError as error:
            self._refused = error

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
