"""Protects the event loop of a session with thousands of instances: fewer events."""

from __future__ import annotations

from engine.models import Piece
from engine.reply.streaming import PieceBatches, Streams
from sessions.events import ReplyPiece
from sessions.journal.masking import Masks
from tests.support.engine.engines import until


async def test_more_streaming_calls_share_the_same_rate_of_events() -> None:
    streams, events, masks = Streams(), list[ReplyPiece](), Masks()
    first = PieceBatches("softmax#1/1/generator/1", events.append, streams, masks)
    further = [
        PieceBatches(f"softmax#{n}/1/generator/1", events.append, streams, masks) for n in range(2, 81)
    ]
    assert streams.period_s == 0.1
    further += [
        PieceBatches(f"softmax#{n}/1/generator/1", events.append, streams, masks) for n in range(81, 2001)
    ]
    assert streams.period_s == 2.0
    for batches in further:
        batches.close()
    first.add(Piece("text", "now "))
    first.add(Piece("text", "at once"))
    await until(lambda: events)
    assert [event.text for event in events] == ["now at once"]


async def test_a_key_in_two_pieces_is_masked_and_ordinary_words_come_at_once() -> None:
    events, masks = list[ReplyPiece](), Masks()
    masks.hide(["sk-1234abcd5678efgh"])
    batches = PieceBatches("softmax#1/1/generator/1", events.append, Streams(), masks)
    batches.add(Piece("text", "My key: sk-1234"))
    await until(lambda: events)
    batches.add(Piece("reasoning", "Hm. "))
    batches.add(Piece("text", "abcd5678efgh, sk-12"))
    batches.flush()
    batches.close()
    assert [(event.kind, event.text) for event in events] == [
        ("text", "My key: "),
        ("reasoning", "Hm. "),
        ("text", "[key], "),
        ("text", "sk-12"),
    ]
