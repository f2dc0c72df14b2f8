"""Commits of attempts have the arrival time of each piece of reasoning."""

from __future__ import annotations

import sys

from sessions.events import CallFinished, ReplyPiece
from sessions.state.folding import fold
from sessions.store.attempt_commits import Reasoning
from tests.support.sessions.journals import finished


def test_reasoning_is_kept_once_and_cut_into_its_pieces_again() -> None:
    events = finished()
    reasoning = Reasoning()
    streamed = [event for event in events if isinstance(event, ReplyPiece) and event.kind == "reasoning"]
    before = [sys.getrefcount(event.text) for event in streamed]
    for event in events:
        reasoning.see(event)
    assert [sys.getrefcount(event.text) for event in streamed] == before, "no second copy"
    ended = {event.call for event in events if isinstance(event, CallFinished)}
    kept = [(event.call, event.mono, event.text) for event in streamed if event.call in ended]
    pieces = [piece for attempt in fold(events).attempts() for piece in reasoning.of(attempt)]
    assert sorted((piece.call, piece.mono, piece.text) for piece in pieces) == sorted(kept)
