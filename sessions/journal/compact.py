"""Compresses values of events in memory until they are read, because few attempts of a long session are read often.

Each value is compressed relative to the first one of its kind and group: the evaluations, prompts and kernels of a task
differ little. An evaluation takes a twentieth of its size as objects, and 50 us to read.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from types import MemberDescriptorType
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from harness import Evaluation, Stage, Verdict
from sessions.events import Message

T = TypeVar("T")

Stages = list[Stage]
ENCODER = msgspec.msgpack.Encoder()
DECODERS: dict[object, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (str, Message, Stages, Evaluation)
}
FAST = 1
"""Level of zlib; the slowest level saves a tenth."""
SHORTEST = 200
"""Characters of a text from which on compressing it saves memory."""
WINDOW = 1 << 15
"""Bytes of an earlier value that zlib looks back to."""
CACHED = 64
"""Evaluations that stay decoded, because screens and stop rules read the same ones again."""

_firsts: dict[tuple[object, str], bytes] = {}
"""The end of the first encoded value of each kind and group."""


class Compact(NamedTuple):
    """A compressed value."""

    data: bytes
    first: bytes
    """End of an encoded value of the same kind and group, relative to which `data` is compressed."""
    kind: object
    verdict: Verdict | None = None
    """The verdict of a compressed evaluation."""


def compact(value: T, kind: object, group: str) -> T:
    """Returns a compressed value in the place of this one; `expanded` gives an equal value back.

    `group` names the values that it resembles, for example by their task. A short text stays whole, and so does a value that
    cannot be encoded, for example because of a lone surrogate or of many levels.
    """
    if value is None or isinstance(value, Compact):
        return value
    if isinstance(value, str) and len(value) < SHORTEST:
        return value
    try:
        encoded = ENCODER.encode(value)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return value
    first = _firsts.setdefault((kind, group), encoded[-WINDOW:])
    compressor = zlib.compressobj(FAST, zdict=first)
    data = compressor.compress(encoded) + compressor.flush()
    return cast("T", Compact(data, first, kind, getattr(value, "verdict", None)))


def compact_messages(messages: Sequence[Message | Compact], group: str) -> tuple[Message, ...]:
    """Returns the messages compressed, without those of the system, which all calls share."""
    return tuple(
        cast("Message", message)
        if isinstance(message, Compact) or message.role == "system"
        else compact(message, Message, f"{group} {message.role}")
        for message in messages
    )


def expanded(value: T) -> T:
    """Returns the value itself, or a value equal to the one that was compressed; also for each element of a tuple."""
    result: Any = value
    if type(result) is Compact:
        result = _decode_evaluation(result) if result.kind is Evaluation else _decode(result)
    elif type(result) is tuple and any(type(element) is Compact for element in result):
        result = tuple(map(expanded, result))
    return cast("T", result)


def _decode(value: Compact) -> Any:
    return DECODERS[value.kind].decode(zlib.decompressobj(zdict=value.first).decompress(value.data))


_decode_evaluation = functools.lru_cache(maxsize=CACHED)(_decode)


class _Field:
    """A slot of a dataclass that may hold a compressed value: reading it gives the value."""

    def __init__(self, slot: MemberDescriptorType) -> None:
        self.slot = slot

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else expanded(self.slot.__get__(owner))

    def __set__(self, owner: object, value: object) -> None:
        self.slot.__set__(owner, value)


def compactable(*fields: str) -> Callable[[type[T]], type[T]]:
    """Returns a decorator for a dataclass with slots: these fields may hold compressed values."""

    def decorate(kind: type[T]) -> type[T]:
        for name in fields:
            setattr(kind, name, _Field(vars(kind)[name]))
        return kind

    return decorate


def held(owner: object, field: str) -> Any:
    """Returns what a field of a `compactable` holds: a value, or a `Compact`."""
    return vars(type(owner))[field].slot.__get__(owner)
