"""Large values stay in the journal: a state reads equal values again, and memory grows by a small row an attempt."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.generated_session.verdicts import correct, kernel, refused
from harness import Verdict
from sessions import JournalTail, SessionState, apply, fold
from sessions import events as ev
from sessions.journal import reader as journal_reader
from sessions.journal.codec import BadLine, encode
from sessions.journal.file import JournalFile, compress_journal
from sessions.journal.reader import JournalReader
from sessions.listing.description import summarise
from tests.support.sessions import story

TASK = "starter/softmax"
KIB = 1 << 10


def chain(attempts: int) -> Iterator[ev.Event]:
    """Yield the events of an instance."""
    for number in range(1, attempts + 1):
        name, call = f"softmax#1/{number}", f"softmax#1/{number}/optimizer/1"
        source = f"# {number}\n{kernel(TASK, number)}"
        prompt = (
            ev.Message("system", "You write kernels. " * 300),
            ev.Message("user", f"Improve it.\n{source}" * 5),
        )
        evaluation = correct(TASK, "0", 1.0 + number % 7 / 10, version=number)
        if number % 3 == 0:
            evaluation = refused(TASK, "0", Verdict.WRONG)
        yield ev.AttemptStarted(attempt=name, origin=ev.Origin.OPTIMIZE)
        yield ev.CallStarted(
            call=call, attempt=name, role=ev.Role.OPTIMIZER, model="test:model", messages=prompt
        )
        reasoning = f"Step {number}: rows. \ud83d" * 500
        yield ev.CallFinished(call=call, text=f"Faster.\n{source}", reasoning=reasoning)
        yield ev.CandidateProposed(attempt=name, source=source)
        yield ev.AttemptJudged(attempt=name, evaluation=evaluation)


def write(path: Path, events: Iterable[ev.Event]) -> Path:
    path.write_bytes(b"".join(encode(event) + b"\n" for event in story.numbered(list(events))))
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return write(tmp_path / "journal.jsonl", chain(12))


def in_memory(journal: Path) -> SessionState:
    """Return the fold of a journal's events, which keeps them."""
    return fold(list(JournalReader(JournalFile(journal))))


def test_state_that_reads_the_journal_equals_one_that_keeps_its_events(journal: Path) -> None:
    small, whole = fold(JournalReader(JournalFile(journal))), in_memory(journal)
    assert small == whole
    assert repr(small) == repr(whole)
    assert summarise(small) == summarise(whole)
    for first, second in zip(small.attempts(), whole.attempts(), strict=True):
        for name in ("verdict", "speed", "evaluation", "source", "stages", "exam", "spread", "profiles"):
            assert getattr(first, name) == getattr(second, name)
        assert [(call.messages, call.reasoning, call.text) for call in first.calls] == [
            (call.messages, call.reasoning, call.text) for call in second.calls
        ]


@given(cut=st.integers(0, len(story.whole())))
def test_state_of_a_growing_journal_is_the_fold_at_any_event(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    events, path = story.whole(), tmp_path_factory.mktemp("grows") / "journal.jsonl"
    lines = [encode(event) + b"\n" for event in events]
    state = SessionState()
    with JournalTail(path) as tail, path.open("ab", buffering=0) as file:
        for part in (lines[:cut], lines[cut:]):
            file.write(b"".join(part))
            new_events = tail.read_new()
            state.journal = tail.reader
            for event in new_events:
                apply(state, event)
    assert state == fold(events)


def test_values_come_back_after_the_journal_was_compressed(journal: Path) -> None:
    whole, opened_before = in_memory(journal), fold(JournalReader(JournalFile(journal)))
    compress_journal(journal)
    assert not journal.exists()
    assert opened_before == whole
    assert fold(JournalReader(JournalFile(journal))) == whole


def test_value_that_left_the_cache_is_read_again(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_reader, "CACHE_BYTES", 20 * KIB)
    state, whole = fold(JournalReader(JournalFile(journal))), in_memory(journal)
    assert state == whole
    assert state == whole


def test_damaged_journal_gives_each_event_its_own_value(tmp_path: Path) -> None:
    first, second = (
        ev.CandidateProposed(attempt=f"softmax#1/{number}", source=f"{number}", seq=5) for number in (1, 2)
    )
    path = tmp_path / "journal.jsonl"
    path.write_bytes(encode(first) + b"\nno event\n" + encode(second) + b"\n")
    reader = JournalReader(JournalFile(path))
    state = fold(reader)
    assert [attempt.source for attempt in state.attempts()] == ["1", "2"]
    assert [type(event) for event in reader] == [ev.CandidateProposed, BadLine, ev.CandidateProposed]
    scanned = JournalReader(JournalFile(path))
    assert list(scanned.scan()) == [0.0] * 3
    assert list(scanned) == list(reader)


def test_scan_of_the_beginning_goes_on_with_the_rest(journal: Path) -> None:
    reader = JournalReader(JournalFile(journal))
    assert len(list(reader.scan(most_bytes=1))) == len(reader) == 1
    assert reader.size < reader.file.size
    list(reader.scan())
    assert (reader.size, reader[:]) == (reader.file.size, list(JournalReader(JournalFile(journal))))


def test_readers_of_two_journals_give_their_own_events(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [ev.CandidateProposed(attempt="softmax#1/1", source=name)])
    states = [fold(JournalReader(JournalFile(tmp_path / name))) for name in ("a", "b", "a")]
    assert [state.attempt("softmax#1/1").source for state in states] == ["a", "b", "a"]


def growth(journal: Path, *, has_reader: bool) -> float:
    """Return the bytes that each attempt from 40 to 80 adds to a state, with its journal or without."""
    reader = JournalReader(JournalFile(journal))
    events = (reader[place] for place, _ in enumerate(list(reader.scan())))
    state = SessionState(journal=reader if has_reader else None)
    traced = []
    tracemalloc.start()
    for _ in range(2):
        for event in islice(events, 5 * 40):
            apply(state, event)
        traced.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return (traced[1] - traced[0]) / 40


def test_earlier_attempts_take_little_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "journal.jsonl", chain(80))
    assert growth(path, has_reader=True) < 6 * KIB
    assert growth(path, has_reader=False) > 25 * KIB
