"""A journal in its two forms: the same bytes by offset, readable by `zcat`, and damage that is noticed."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sessions.errors import StoredJournalDamaged
from sessions.journal import file as journal_file
from sessions.journal.file import JournalFile, compress_journal, compressed_path, expand_journal
from sessions.journal.journal import JournalTail, open_journal
from tests.support.sessions import story


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Compressed journal of many members, one of them with a single long line."""
    monkeypatch.setattr(journal_file, "BLOCK_BYTES", 4000)
    path = tmp_path / "journal.jsonl"
    chooser = random.Random(1)
    lines = [bytes(chooser.choices(b"abcdef \r\0", k=chooser.randrange(400))) + b"\n" for _ in range(400)]
    path.write_bytes(b"".join([*lines[:200], b"x" * 20_000 + b"\n", *lines[200:]]))
    (tmp_path / "plain").write_bytes(path.read_bytes())
    compress_journal(path)
    return path


def test_compressed_journal_has_the_same_bytes_at_the_same_offsets(journal: Path) -> None:
    plain = (journal.parent / "plain").read_bytes()
    assert not journal.exists()
    assert subprocess.run(["zcat", compressed_path(journal)], capture_output=True, check=True).stdout == plain
    chooser = random.Random(2)
    with JournalFile(journal) as file:
        assert file.size == len(plain)
        assert [*file.lines()] == [line + b"\n" for line in plain.split(b"\n")[:-1]]
        for _ in range(200):
            offset, length = chooser.randrange(len(plain) + 10), chooser.randrange(30_000)
            assert file.read(offset, length) == plain[offset : offset + length]
    expand_journal(journal)
    assert journal.read_bytes() == plain
    assert not compressed_path(journal).exists()


def test_reader_goes_on_with_the_file_that_it_opened(journal: Path) -> None:
    plain = (journal.parent / "plain").read_bytes()
    with JournalFile(journal) as compressed:
        assert compressed.is_current
        expand_journal(journal)
        assert not compressed.is_current
        with JournalFile(journal) as expanded:
            compress_journal(journal)
            assert b"".join(compressed.lines()) == b"".join(expanded.lines()) == plain


def test_tail_follows_a_journal_through_both_forms(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with closing(open_journal(path).writer) as writer, JournalTail(path) as tail:
        first = writer.append(story.started())
        assert tail.read_new() == [first]
        writer.close()
        compress_journal(path)
        tail.follow()
        assert tail.read_new() == []
        expand_journal(path)
        with closing(open_journal(path).writer) as again:
            second = again.append(next(iter(story.attempt("softmax#1/1", story.Verdict.CORRECT))))
        compress_journal(path)
        tail.follow()
        assert tail.read_new() == [second]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: flipped(data, 1), id="header"),
        pytest.param(lambda data: flipped(data, len(data) // 2), id="middle"),
        pytest.param(lambda data: flipped(data, len(data) - 6), id="end"),
        pytest.param(lambda data: data[:-3], id="cut"),
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda data: data[:16] + bytes(4) + data[20:], id="member without bytes"),
    ],
)
def test_damage_of_a_compressed_journal_is_named(journal: Path, damage: Callable[[bytes], bytes]) -> None:
    packed = compressed_path(journal)
    packed.write_bytes(damage(packed.read_bytes()))
    with pytest.raises(StoredJournalDamaged, match="doctor --repair"), JournalFile(journal) as file:
        file.read(0, file.size)
