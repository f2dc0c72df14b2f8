"""The journal: one event per line, append only. `JournalWriter` writes it, `JournalTail` follows it for viewers.

The writer is one thread of the process that holds the session's lock. Readers need no lock: a line counts when its
line end is written. A line that a crash cut was never acknowledged.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from sessions.errors import JournalDamaged, JournalNotWritable
from sessions.events import AnyEvent, DurableEvent, Event
from sessions.files import open_regular, sync_folder, write_all, write_whole
from sessions.journal.masking import Masks

from .codec import BadLine, Skipped, decode, encode, readable
from .file import CHUNK_BYTES, JournalFile
from .reader import JournalReader

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class EventClock:
    """The clocks of a journal's times."""

    wall: Callable[[], float] = time.time
    """Seconds since the epoch, UTC."""
    mono: Callable[[], float] = time.monotonic
    """Seconds of a clock that never jumps; events carry the time since the writer was created."""


@dataclass(slots=True)
class Journal:
    """A journal as read: its events, and the lines that were skipped."""

    events: list[AnyEvent] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, line: bytes, number: int) -> None:
        """Decode and add a complete line, with or without its end."""
        event = decode(line)
        if isinstance(event, Event):
            self.events.append(event)
        else:
            self.skipped.append(BadLine(event.why, number) if isinstance(event, BadLine) else event)


def parse(lines: Iterable[bytes]) -> Journal:
    """Returns the events on lines of a journal; unknown events and bad lines are kept apart.

    A line without its end is ignored.
    """
    journal = Journal()
    for number, line in enumerate(lines, start=1):
        if line.endswith(b"\n"):
            journal.add(line, number)
    return journal


def read_journal(path: Path) -> Journal:
    """Returns the events of a journal, as `parse` does."""
    with path.open("rb", buffering=CHUNK_BYTES) as file:
        return parse(file)


class Opened(NamedTuple):
    """A journal that was opened for writing."""

    writer: JournalWriter
    torn: Path | None
    """The file with the torn last line, if there was one."""


class JournalWriter:
    """Appends events and sets their number and times; created by `open_journal`."""

    def __init__(self, path: Path, *, descriptor: int, next_seq: int, size: int, clock: EventClock) -> None:
        self.path = path
        self.masks = Masks()
        """Keys that no event may have."""
        self._descriptor = descriptor
        self._next_seq = next_seq
        self._size = size
        self._clock = clock
        self._born = clock.mono()
        self._failed = ""

    @property
    def last_seq(self) -> int:
        """The number of the last event written."""
        return self._next_seq - 1

    @property
    def size(self) -> int:
        """Bytes written, all in complete lines."""
        return self._size

    def append(self, event: E) -> E:
        """Write an event and return it with number and times; a `DurableEvent` is on disk when this returns.

        Raises `JournalNotWritable` if the disk refuses: the partial line is removed and the number is used again.
        Raises `EventNotKeepable` if no reader could read the event.
        """
        written = self.write(event)
        if isinstance(event, DurableEvent):
            self.sync()
        return written

    def write(self, event: E) -> E:
        """Like `append`, without waiting for the disk; `sync` makes the event durable."""
        if self._failed:
            raise JournalNotWritable(self.path, why=self._failed)
        stamped = msgspec.structs.replace(
            event, seq=self._next_seq, wall=self._clock.wall(), mono=self._clock.mono() - self._born
        )
        plain = encode(stamped)
        line = self.masks.mask_line(plain)
        if isinstance(event, DurableEvent) or line != plain:
            stamped = readable(stamped, line)
        try:
            write_all(self._descriptor, line + b"\n")
        except OSError as error:
            self._undo_partial_line(error)
            raise JournalNotWritable(self.path, why=error.strerror or str(error)) from error
        self._size += len(line) + 1
        self._next_seq += 1
        return stamped

    def _undo_partial_line(self, error: OSError) -> None:
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self._failed = error.strerror or str(error)

    def sync(self) -> None:
        """Sync all written events to the disk; another thread than the writer may call it.

        After an error the system may have dropped data that it could not write, so this writer then refuses all
        further events, and a later call fails too: the system reports such an error once.
        """
        if self._failed:
            raise JournalNotWritable(self.path, why=self._failed)
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._failed = error.strerror or str(error)
            raise JournalNotWritable(self.path, why=self._failed) from error

    def close(self) -> None:
        """Sync and close the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            self._failed = self._failed or "closed"
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)


def open_journal(path: Path, *, clock: EventClock | None = None) -> Opened:
    """Open a journal for writing: a new one, or one that another engine left.

    A torn last line is cut off and kept as `journal.torn-<n>`. Raises `JournalDamaged` if a line in the middle cannot
    be read or its number does not rise; the file then stays unchanged.
    """
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise JournalNotWritable(path, why=error.strerror or str(error)) from error
    try:
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        last_seq = _last_seq(path, io.BytesIO(data[:end]))
        torn = _cut(path, descriptor, data[end:], end) if end < len(data) else None
        sync_folder(path.parent)
    except BaseException:
        os.close(descriptor)
        raise
    writer = JournalWriter(
        path, descriptor=descriptor, next_seq=last_seq + 1, size=end, clock=clock or EventClock()
    )
    return Opened(writer, torn)


def _last_seq(path: Path, lines: Iterable[bytes]) -> int:
    """Return the number of the last event. Raises `JournalDamaged` at a line after which nothing may be appended."""
    last_seq = 0
    for number, line in enumerate(lines, start=1):
        event = decode(line)
        if isinstance(event, BadLine):
            raise JournalDamaged(path, line=number, why=event.why)
        if event.seq <= last_seq:
            raise JournalDamaged(path, line=number, why=f"its number {event.seq} does not follow {last_seq}")
        last_seq = event.seq
    return last_seq


def _cut(path: Path, descriptor: int, torn: bytes, end: int) -> Path:
    number = 1
    while (aside := path.with_name(f"journal.torn-{number}")).exists():
        number += 1
    write_whole(aside, torn)
    os.ftruncate(descriptor, end)
    os.fsync(descriptor)
    return aside


class JournalTail:
    """Reads a journal while it grows, from any sequence number on; cheap if nothing is new.

    It goes on where the journal is compressed or expanded. A file that does not exist yet has no events.
    """

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self.path = path
        self.reader: JournalReader | None = None
        """Reads each event again by its number; `None` as long as there is no file."""
        self.skipped: list[Skipped] = []
        """Lines that were skipped so far."""
        self._after = after
        self._seen: tuple[int, int] | None = None

    def read_new(self, *, most_bytes: int | None = None) -> list[AnyEvent]:
        """Returns the events of all lines that were completed since the last call.

        A torn last line is read later, when it is complete, or ignored if it is cut off. With `most_bytes`, a call
        stops after about as many bytes, but not before it has read a line; the next call goes on there.
        """
        if self.reader is None:
            try:
                self.reader = JournalReader(JournalFile(self.path))
            except FileNotFoundError:
                return []
        reader, events = self.reader, []
        status = reader.file.status
        seen = (status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return []
        # The size is always after a line end, so it stays valid if a torn line is cut off.
        start = reader.size
        for event in reader.read_on():
            if isinstance(event, BadLine):
                event = BadLine(event.why, len(reader))
            if not isinstance(event, Event):
                self.skipped.append(event)
            elif event.seq > self._after:
                events.append(event)
            if most_bytes is not None and reader.size - start >= most_bytes:
                break
        else:
            self._seen = seen
        return events

    def follow(self) -> None:
        """Go on in the journal's other form if it has been replaced: the session was finished, or is open again."""
        if self.reader is None or self.reader.file.is_current:
            return
        try:
            # The lines that were read are at the same places in both forms.
            self.reader.file, self._seen = JournalFile(self.path), None
        except FileNotFoundError:
            return  # it was deleted; the open file has all of it

    def close(self) -> None:
        """Let the file go; it stays open for states that read it again."""
        self.reader = None

    def __enter__(self) -> JournalTail:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
