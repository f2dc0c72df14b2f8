"""Events as lines of JSON, and back. A line that is no event of ours is told apart, never guessed at."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from .errors import EventNotKeepable
from .events import AnyEvent, Event

E = TypeVar("E", bound=Event)

EVENTS: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
ENCODER = msgspec.json.Encoder()


class _Head(msgspec.Struct):
    """What every event line has, whoever wrote it."""

    type: str
    seq: int = 0
    wall: float = 0.0


_HEADS: msgspec.json.Decoder[_Head] = msgspec.json.Decoder(_Head)


def tag_of(event: Event | type[Event]) -> str:
    """The tag that stands in an event's `type`."""
    return str(event.__struct_config__.tag)


TAGS = frozenset(tag_of(kind) for kind in typing.get_args(AnyEvent))


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A whole event of a type that this version does not know: skipped and counted."""

    tag: str
    seq: int
    wall: float


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not an event: cut, overwritten, or not ours."""

    why: str
    line: int | None = None
    """1-based place in its file, where that is known."""


Skipped = UnknownEvent | BadLine


def encode(event: Event) -> bytes:
    """One line of JSON without its line end.

    Lone surrogates, which a garbled reply can hold and UTF-8 cannot, become question marks.
    """
    try:
        return ENCODER.encode(event)
    except UnicodeEncodeError:
        return ENCODER.encode(_mended(msgspec.to_builtins(event)))


def decode(line: bytes) -> AnyEvent | Skipped:
    """The event on a line; unknown fields are skipped."""
    try:
        return EVENTS.decode(line)
    except msgspec.ValidationError as error:
        why = str(error)
    except msgspec.DecodeError as error:
        return BadLine(str(error))
    except UnicodeDecodeError as error:
        return BadLine(error.reason)
    try:
        head = _HEADS.decode(line)
    except msgspec.DecodeError:
        return BadLine(why)
    return BadLine(why) if head.type in TAGS else UnknownEvent(head.type, head.seq, head.wall)


def readable(event: E, line: bytes) -> E:
    """The event as every reader will see it; `EventNotKeepable` when no reader could."""
    back = decode(line)
    if isinstance(back, type(event)):
        return back
    raise EventNotKeepable(tag_of(event), why=back.why if isinstance(back, BadLine) else "unknown type")


def _mended(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, dict):
        return {str(_mended(key)): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
