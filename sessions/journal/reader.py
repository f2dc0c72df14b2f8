"""Lines of a journal, decoded when they are read: a state keeps numbers of events, not their large values.

Events that were read by number stay decoded in one cache of the process: screens and prompts read few events often.
"""

from __future__ import annotations

import itertools
import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, cast, overload

import msgspec

from sessions.errors import JournalNotReadable
from sessions.events import AnyEvent, Event

from .codec import BadLine, Skipped, decode, head_of
from .file import JournalFile

E = TypeVar("E", bound=Event)

CACHE_BYTES = 16 << 20
"""Bytes of the lines that stay decoded; their events take about twice as much."""

_cached: OrderedDict[tuple[int, int], tuple[AnyEvent, int]] = OrderedDict()
"""Event and bytes of its line, by reader and number; the last read is the last."""
_cached_bytes = 0
_caching = threading.Lock()
_readers = itertools.count()


class JournalReader(Sequence[AnyEvent | Skipped]):
    """The lines of an open journal as events, by place; `event` reads by number.

    One thread takes in lines. Any thread may read the lines that were taken in. Reading raises `JournalNotReadable`.
    """

    def __init__(self, file: JournalFile) -> None:
        self.file = file
        self.size = 0
        """Bytes of the lines that were taken in or passed over."""
        self._offsets, self._lengths, self._numbers = array("Q"), array("I"), array("Q")
        """Place, length and number of each line; a line without a rising number has the number of the line before."""
        self._repeated: set[int] = set()
        """Numbers that several events have: only a damaged journal has any."""
        self._reader = next(_readers)

    def add(self, line: bytes) -> AnyEvent | Skipped:
        """Take in the next line, with its end; returns its event."""
        event = decode(line)
        self.note(0 if isinstance(event, BadLine) else event.seq, len(line))
        return event

    def note(self, number: int, length: int) -> None:
        """Take in the next line by the number of its event (0: it has none) and its length in bytes."""
        last = self._numbers[-1] if self._numbers else 0
        if 0 < number <= last:
            self._repeated.add(number)
        self._offsets.append(self.size)
        self._lengths.append(length)
        self._numbers.append(max(number, last))  # last: another thread looks for numbers
        self.size += length

    def pass_over(self, line: bytes) -> None:
        """Leave out the next line: its event cannot be read."""
        self.size += len(line)

    def read_on(self) -> Iterator[AnyEvent | Skipped]:
        """Take in the complete lines that the file has further on; yields their events."""
        return map(self.add, self.file.lines(self.size))

    def scan(self, most_bytes: int | None = None) -> Iterator[float]:
        """Take in all lines (or about so many bytes) without decoding them; yields the time of each, 0 if it has none."""
        for line in self.file.lines(self.size):
            head = head_of(line)
            self.note(head.seq if head is not None else 0, len(line))
            yield head.wall if head is not None else 0.0
            if most_bytes is not None and self.size >= most_bytes:
                return

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> AnyEvent | Skipped: ...
    @overload
    def __getitem__(self, place: slice) -> list[AnyEvent | Skipped]: ...
    def __getitem__(self, place: int | slice) -> AnyEvent | Skipped | list[AnyEvent | Skipped]:
        """Returns the event of a line, or of several lines, which are read at once."""
        if not isinstance(place, slice):
            return decode(self.file.read(self._offsets[place], self._lengths[place]))
        offsets, lengths = self._offsets[place], self._lengths[place]
        if not offsets:
            return []
        first = offsets[0]
        data = self.file.read(first, offsets[-1] + lengths[-1] - first)
        spans = zip(offsets, lengths, strict=True)
        return [decode(data[offset - first : offset - first + length]) for offset, length in spans]

    def __iter__(self) -> Iterator[AnyEvent | Skipped]:
        """Yield the events of all lines, also of those that the file has further on."""
        for place in range(len(self)):
            yield self[place]
        yield from self.read_on()

    def has(self, number: int) -> bool:
        """True if exactly one line that was taken in has this number."""
        place = bisect_left(self._numbers, number)
        is_known = place < len(self._numbers) and self._numbers[place] == number
        return is_known and number not in self._repeated and number > 0

    def event(self, number: int) -> AnyEvent:
        """Returns the event with a number that `has` confirms."""
        global _cached_bytes
        key = self._reader, number
        with _caching:
            if key in _cached:
                _cached.move_to_end(key)
                return _cached[key][0]
        place = bisect_left(self._numbers, number)
        event = self[place]
        if not isinstance(event, Event):
            raise JournalNotReadable(self.file.path, OSError(0, f"event {number} is lost"))
        with _caching:
            if key not in _cached:
                _cached[key] = event, self._lengths[place]
                _cached_bytes += self._lengths[place]
                while _cached_bytes > CACHE_BYTES:
                    _cached_bytes -= _cached.popitem(last=False)[1][1]
        return event


class KeptEvent(msgspec.Struct, Generic[E], eq=False, gc=False):
    """An event in a state: only its number, if the state has a journal to read it from, else the event itself.

    Python's collector does not see it: it is in no cycle, and a long session has tens of thousands.
    """

    content: E | int
    journal: JournalReader | None

    @property
    def event(self) -> E:
        """The event."""
        if self.journal is None:
            return cast("E", self.content)
        return cast("E", self.journal.event(cast("int", self.content)))

    def __eq__(self, value: object) -> bool:
        return isinstance(value, KeptEvent) and self.event == value.event

    def __repr__(self) -> str:
        return repr(self.event)


def keep(event: E, journal: JournalReader | None) -> KeptEvent[E]:
    """Returns an event as a state keeps it, which may have a journal."""
    if journal is None or not journal.has(event.seq):
        return KeptEvent(event, None)
    return KeptEvent(event.seq, journal)
