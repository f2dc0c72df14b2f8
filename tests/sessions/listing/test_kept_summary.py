"""Lists of long live sessions: from the summary beside the journal, and equal to a fold of the journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness import Verdict
from sessions import Home, Recorder, fold
from sessions import events as ev
from sessions.catalog import journal_of, list_sessions, session_info, skimmed_state
from sessions.home import SessionFiles
from sessions.listing.info import SessionInfo, Standing
from sessions.listing.kept_summary import LONG_BYTES, KeptSummary
from sessions.listing.skimming import RESULTS, skim_of_attempts
from tests.support.sessions import story
from tests.support.sessions.story import SESSION

MOST_READ = 64 << 10
PIECE = "a dozen words of reasoning, as they come in half a second. " * 1000


async def play_long(recorder: Recorder) -> None:
    """Record an instance, and streamed text until its journal is long."""
    await story.play(recorder, story.instance(1))
    for _ in range(LONG_BYTES // len(PIECE) + 1):
        recorder.record(ev.ReplyPiece(call="softmax#1/3/generator/1", kind="reasoning", text=PIECE))


@pytest.fixture
async def crashed(home: Home) -> SessionFiles:
    """A long session: its engine ended without a last event and without a summary."""
    with Recorder.begin(home, story.started()) as recorder:
        await play_long(recorder)
    return home.files(SESSION)


def listed(home: Home) -> SessionInfo:
    (info,) = list_sessions(home)
    return info


def folded(home: Home) -> SessionInfo:
    home.files(SESSION).summary.unlink(missing_ok=True)
    return listed(home)


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])


def append(files: SessionFiles, *events: ev.Event) -> None:
    first = msgspec.json.decode(files.journal.read_bytes().splitlines()[-1])["seq"] + 1
    lines = [
        msgspec.json.encode(msgspec.structs.replace(event, seq=first + place)) + b"\n"
        for place, event in enumerate(events)
    ]
    with files.journal.open("ab") as journal:
        journal.writelines(lines)


async def test_only_the_first_list_of_a_crashed_session_reads_its_journal(
    home: Home, crashed: SessionFiles
) -> None:
    first = listed(home)
    before = bytes_read()
    assert listed(home) == session_info(home, SESSION) == first
    assert bytes_read() - before < MOST_READ < crashed.journal.stat().st_size
    assert (first.state, first.attempts) == (Standing.CRASHED, 3)


async def test_list_has_what_came_after_the_summary(home: Home, crashed: SessionFiles) -> None:
    listed(home)
    judged = ev.AttemptJudged(
        attempt="softmax#1/4", evaluation=story.evaluation(Verdict.CORRECT, speedup=9.0)
    )
    append(crashed, judged)
    assert listed(home).best == {"starter/softmax": "softmax#1/4"}
    append(crashed, ev.ReplyPiece(call="softmax#1/3/generator/1", kind="text", text=PIECE))
    before = bytes_read()
    assert listed(home).attempts == 4
    assert bytes_read() - before < 2 * MOST_READ
    append(crashed, ev.EngineStopped(reason="asked"))
    assert listed(home).state is Standing.STOPPED


def torn(summary: bytes) -> bytes:
    return summary[: len(summary) // 2]


def of_a_later_version(summary: bytes) -> bytes:
    changed = msgspec.msgpack.decode(summary)
    return msgspec.msgpack.encode(changed | {"version": "later", "more": 1})


def of_another_journal(summary: bytes) -> bytes:
    live = msgspec.msgpack.decode(summary, type=KeptSummary)
    return msgspec.msgpack.encode(msgspec.structs.replace(live, end=live.end[::-1]))


@pytest.mark.parametrize("damage", [torn, of_a_later_version, of_another_journal, lambda _: b""])
async def test_summary_that_cannot_count_is_made_again(
    home: Home, crashed: SessionFiles, damage: Callable[[bytes], bytes]
) -> None:
    right = listed(home)
    summary = crashed.summary.read_bytes()
    live = msgspec.msgpack.decode(summary, type=KeptSummary)
    wrong = msgspec.structs.replace(live, summary=msgspec.structs.replace(live.summary, attempts=99))
    crashed.summary.write_bytes(damage(msgspec.msgpack.encode(wrong)))
    assert listed(home) == right
    assert crashed.summary.read_bytes() == summary


@pytest.mark.parametrize("lost_bytes", [1, 70, LONG_BYTES // 20, LONG_BYTES // 2])
async def test_session_whose_journal_was_cut_after_the_summary(
    home: Home, crashed: SessionFiles, lost_bytes: int
) -> None:
    listed(home)
    append(crashed, *(ev.SessionTitled(title=title) for title in ("one", "two")))
    data = crashed.journal.read_bytes()
    crashed.journal.write_bytes(data[: len(data) - lost_bytes])
    assert listed(home) == folded(home)


async def test_running_engine_keeps_its_summary(home: Home) -> None:
    with Recorder.begin(home, story.started()) as recorder:
        await play_long(recorder)
        await recorder.keep_summary()
        before = bytes_read()
        assert (listed(home).state, listed(home).attempts) == (Standing.RUNNING, 3)
        assert bytes_read() - before < MOST_READ
        recorder.record(ev.SessionTitled(title="changed"))
        recorder.record(ev.EngineStopped(reason="asked"))
        await recorder.keep_summary(at_end=True)
    before = bytes_read()
    assert (listed(home).state, listed(home).title) == (Standing.STOPPED, "changed")
    assert bytes_read() - before < MOST_READ


async def test_reading_an_attempt_folds_its_instance_alone(home: Home) -> None:
    with Recorder.begin(home, story.started()) as recorder:
        for number in (1, 11):
            await story.play(recorder, story.instance(number))
    whole = fold(journal_of(home, SESSION).events)
    state = skimmed_state(home, SESSION, skim_of_attempts(["softmax#1/2"]))
    assert state.instances["softmax#1"] == whole.instances["softmax#1"]
    assert not state.instances["softmax#11"].attempts
    assert whole.instances["softmax#11"].attempts


async def test_results_need_no_streamed_text(home: Home, crashed: SessionFiles) -> None:
    whole, results = fold(journal_of(home, SESSION).events), skimmed_state(home, SESSION, RESULTS)
    assert [attempt.evaluation for attempt in results.attempts()] == [
        attempt.evaluation for attempt in whole.attempts()
    ]
    assert [[call.usage for call in attempt.calls if call.finished] for attempt in results.attempts()] == [
        [call.usage for call in attempt.calls if call.finished] for attempt in whole.attempts()
    ]
