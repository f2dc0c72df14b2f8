"""Stories of events in memory, in a journal without a name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile

from sessions.events import AnyEvent
from sessions.journal.codec import encode
from sessions.journal.file import JournalFile
from sessions.journal.reader import JournalReader
from tui.cockpit.data import replays
from tui.cockpit.data.replays import Story


def open_story(session: str, events: Iterable[AnyEvent | bytes], *, is_whole: bool = True) -> Story:
    """Return the story of events, or of lines with their ends; without `is_whole` it is only its beginning."""
    lines = [event if isinstance(event, bytes) else encode(event) + b"\n" for event in events]
    with NamedTemporaryFile() as file:
        file.write(b"".join(lines if is_whole else [*lines, b"cut\n"]))
        file.flush()
        journal = JournalReader(JournalFile(Path(file.name)))
    return replays.open_story(session, journal, most_bytes=None if is_whole else sum(map(len, lines)))


def read_story(session: str, events: Iterable[AnyEvent | bytes]) -> Story:
    """Return the story of events with its marks."""
    return open_story(session, events).with_marks()
