"""Journal: acknowledged events are durable, torn lines are set aside, and readers follow a growing file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions import events as ev
from sessions.errors import JournalDamaged, JournalNotWritable
from sessions.journal.codec import BadLine, UnknownEvent
from sessions.journal.journal import EventClock, JournalTail, open_journal, read_journal
from tests.support.sessions.story import Ticking, started


def note(words: str) -> ev.Notice:
    return ev.Notice(level="info", message=words)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def write(path: Path, *events: ev.Event) -> list[ev.Event]:
    writer = open_journal(path, clock=EventClock(Ticking(), Ticking(50.0))).writer
    written = [writer.append(event) for event in events]
    writer.close()
    return written


def test_events_get_numbers_and_times(path: Path) -> None:
    written = write(path, started(), note("a"), note("b"))
    assert [event.seq for event in written] == [1, 2, 3]
    assert [event.wall for event in written] == [1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 3]
    assert [event.mono for event in written] == [1.0, 2.0, 3.0]
    assert read_journal(path).events == written


def test_journal_continues_after_its_last_event(path: Path) -> None:
    first = write(path, note("a"))
    opened = open_journal(path)
    assert (read_journal(path).events, opened.torn) == (first, None)
    assert opened.writer.append(note("b")).seq == 2
    opened.writer.close()


def test_torn_last_line_is_moved_to_its_own_file(path: Path) -> None:
    kept = write(path, note("a"))
    for number, torn in enumerate([b'{"type":"notice","se', b"\0\0\0\0"], start=1):
        with path.open("ab") as file:
            file.write(torn)
        opened = open_journal(path)
        assert opened.torn == path.with_name(f"journal.torn-{number}")
        assert opened.torn.read_bytes() == torn
        kept.append(opened.writer.append(note("b")))
        opened.writer.close()
        assert read_journal(path).events == kept


def test_bad_line_in_the_middle_is_an_error_that_changes_nothing(path: Path) -> None:
    write(path, note("a"), note("b"), note("c"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"type":"noti\n' + lines[2] + b"torn")
    before = path.read_bytes()
    with pytest.raises(JournalDamaged, match=r"journal\.jsonl line 2 cannot be read"):
        open_journal(path)
    assert path.read_bytes() == before
    assert list(path.parent.glob("journal*")) == [path]
    journal = read_journal(path)
    assert [event.seq for event in journal.events] == [1, 3]
    assert isinstance(journal.skipped[0], BadLine)
    assert journal.skipped[0].line == 2
    # The fix that the message advises works.
    path.write_bytes(lines[0] + lines[2])
    opened = open_journal(path)
    assert opened.writer.append(note("d")).seq == 4
    opened.writer.close()


def test_repeated_numbers_are_damage(path: Path) -> None:
    write(path, note("a"), note("b"))
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(JournalDamaged, match="line 3"):
        open_journal(path)


def test_events_of_a_newer_version_keep_their_numbers(path: Path) -> None:
    write(path, note("a"))
    with path.open("ab") as file:
        file.write(b'{"type":"agent_sang","seq":2,"wall":1.0}\n')
    opened = open_journal(path)
    assert read_journal(path).skipped == [UnknownEvent("agent_sang", 2, 1.0)]
    assert opened.writer.append(note("b")).seq == 3
    opened.writer.close()


def test_only_durable_events_are_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fdatasync
    monkeypatch.setattr(
        os, "fdatasync", lambda descriptor: (synced.append(path.stat().st_size), real(descriptor))
    )
    writer = open_journal(path).writer
    writer.append(ev.ReplyPiece(call="softmax#1/1/generator/1", kind="text", text="x"))
    assert synced == []
    writer.append(ev.CallFinished(call="softmax#1/1/generator/1", text="x"))
    assert synced == [path.stat().st_size]
    writer.close()


def test_full_disk_leaves_no_partial_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = open_journal(path).writer
    writer.append(note("a"))
    real = os.write
    calls = []

    def full(descriptor: int, data: bytes) -> int:
        calls.append(1)
        if len(calls) % 2:
            return real(descriptor, bytes(data)[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(JournalNotWritable, match="No space left on device"):
            writer.append(note("b"))
    assert writer.append(note("c")).seq == 2
    writer.close()
    assert [event.message for event in read_journal(path).events] == ["a", "c"]


def test_failed_sync_stops_all_later_events(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = open_journal(path).writer
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        with pytest.raises(JournalNotWritable, match="Input/output error"):
            writer.append(started())
    with pytest.raises(JournalNotWritable):
        writer.append(note("b"))
    with pytest.raises(JournalNotWritable):
        writer.sync()  # one that waited while the first failed
    writer.close()


def test_unopenable_journal_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(JournalNotWritable, match="Is a directory"):
        open_journal(tmp_path / "journal.jsonl")


def test_tail_reads_new_events_after_any_number(path: Path) -> None:
    with JournalTail(path, after=1) as tail:
        assert tail.read_new() == []
        written = write(path, note("a"), note("b"))
        assert tail.read_new() == written[1:]
        assert tail.read_new() == []
        written = write(path, note("c"))
        assert tail.read_new() == written
        path.unlink()
        assert tail.read_new() == []


def test_tail_waits_for_a_torn_line_and_survives_its_removal(path: Path) -> None:
    write(path, note("a"))
    with JournalTail(path) as tail:
        assert len(tail.read_new()) == 1
        with path.open("ab") as file:
            file.write(b'{"type":"notice","seq":2,"lev')
        assert tail.read_new() == []
        with path.open("ab") as file:
            file.write(b'el":"info","message":"b"}\nnot an event\n{"torn')
        assert [event.message for event in tail.read_new()] == ["b"]
        assert [skipped.line for skipped in tail.skipped] == [3]
        lines = path.read_bytes().splitlines(keepends=True)
        os.truncate(path, len(b"".join(lines[:3])))
        with path.open("ab") as file:
            file.write(b'{"type":"notice","seq":4,"level":"info","message":"c"}\n')
        assert [event.message for event in tail.read_new()] == ["c"]


@given(data=st.data())
def test_tail_reads_every_event_once_in_any_chunks(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tail")
    words = data.draw(st.lists(st.text(max_size=20), min_size=1, max_size=8))
    written = write(folder / "whole", *map(note, words))
    whole = (folder / "whole").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    seen = []
    with JournalTail(folder / "grows") as tail, (folder / "grows").open("ab", buffering=0) as file:
        for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            file.write(whole[begin:end])
            seen += tail.read_new(most_bytes=data.draw(st.none() | st.integers(1, 200)))
        while portion := tail.read_new(most_bytes=50):
            seen += portion
        assert tail.skipped == []
    assert seen == written


def test_tail_reads_a_line_longer_than_its_buffer(path: Path) -> None:
    written = write(path, note("x" * 3_000_000), note("y"))
    with JournalTail(path) as tail:
        assert tail.read_new() == written
