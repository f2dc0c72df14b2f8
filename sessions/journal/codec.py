"""Encodes events as lines of JSON and decodes them. A line that is not a known event is reported, never guessed."""

from __future__ import annotations

import re
import typing
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from sessions.errors import EventNotKeepable
from sessions.events import AnyEvent, Event, SessionStarted

E = TypeVar("E", bound=Event)

EVENTS: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
ENCODER = msgspec.json.Encoder()


class EventHead(msgspec.Struct):
    """The fields of every event line, from any version."""

    type: str
    seq: int = 0
    wall: float = 0.0


_HEADS: msgspec.json.Decoder[EventHead] = msgspec.json.Decoder(EventHead)


def tag_of(event: Event | type[Event]) -> str:
    """Returns the value of an event's `type` field."""
    return str(event.__struct_config__.tag)


PATTERN = re.compile(r"`str` matching regex '.*'")
STARTED = b'{"type":"%s"' % tag_of(SessionStarted).encode()
TAGS = frozenset(tag_of(kind) for kind in typing.get_args(AnyEvent))


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A valid event of a type that this version does not know: skipped and counted."""

    tag: str
    seq: int
    wall: float


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not an event: cut, overwritten, or from another program."""

    why: str
    line: int | None = None
    """Line number in its file from 1, if known."""


Skipped = UnknownEvent | BadLine


def encode(event: Event) -> bytes:
    """Returns the event as one line of JSON without its line end.

    Lone surrogates become question marks: a garbled reply can contain them, but UTF-8 cannot encode them.
    """
    fields: object = flat(event) if isinstance(event, SessionStarted) else event
    try:
        return ENCODER.encode(fields)
    except UnicodeEncodeError:
        return ENCODER.encode(without_surrogates(msgspec.to_builtins(fields)))


def decode(line: bytes) -> AnyEvent | Skipped:
    """Returns the event on a line; unknown fields are ignored."""
    try:
        return _started(line) if line.startswith(STARTED) else EVENTS.decode(line)
    except msgspec.ValidationError as error:
        # The pattern of a name is no sentence for a person.
        why = PATTERN.sub("a name without `..`, spaces and hidden folders", str(error))
    except msgspec.DecodeError as error:
        return BadLine(str(error))
    except UnicodeDecodeError as error:
        return BadLine(error.reason)
    except RecursionError:
        return BadLine("its values are nested too deeply")
    try:
        head = _HEADS.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return BadLine(why)
    return BadLine(why) if head.type in TAGS else UnknownEvent(head.type, head.seq, head.wall)


def head_of(line: bytes) -> EventHead | None:
    """Returns type, number and time of a line, which is much faster than `decode`; `None` if they cannot be read."""
    try:
        return _HEADS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def flat(record: msgspec.Struct) -> dict[str, object]:
    """Returns the fields of a record with settings: in JSON, these are among the others, not in a level of their own."""
    fields: dict[str, object] = {}
    for name, value in msgspec.to_builtins(record).items():
        fields.update(value if name == "settings" else {name: value})
    return fields


def _started(line: bytes) -> SessionStarted:
    fields = msgspec.json.decode(line, type=dict[str, object])
    return msgspec.convert(fields | {"settings": fields}, SessionStarted)


def readable(event: E, line: bytes) -> E:
    """Returns the event as a reader will decode it; `EventNotKeepable` if it cannot be decoded."""
    decoded = decode(line)
    if isinstance(decoded, type(event)):
        return decoded
    raise EventNotKeepable(tag_of(event), why=decoded.why if isinstance(decoded, BadLine) else "unknown type")


def without_surrogates(value: object) -> object:
    """Returns plain data with question marks for lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, dict):
        return {str(without_surrogates(key)): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value
