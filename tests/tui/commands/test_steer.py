"""Commands that steer a session, given to sessions that no engine runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness import Verdict
from sessions import Home, fold
from sessions.catalog import journal_of
from sessions.events import AnyEvent, CallFailed, PersonCommand, WaitingForPerson
from sessions.store.reconcile import record_at_rest
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.actions.line import Order
from tui.cockpit.desk.desk import destination
from tui.cockpit.desk.messages import OpenInstance
from tui.print.narrate import Narrator


def narrated(events: list[AnyEvent]) -> list[str]:
    narrator = Narrator()
    return [line for event in events for line in narrator.lines(event)]


def test_command_to_a_stopped_session_is_kept_for_its_resume(shell: Shell, home: Home) -> None:
    stored.stopped(home)
    assert shell("steer", "hint", stored.FIRST, "softmax#1", "Use wide loads.").code == 0
    assert shell("steer", "pause", stored.FIRST).code == 0
    assert shell("steer", "retire", stored.FIRST, "softmax#1").code == 0
    events = journal_of(home, stored.FIRST).events
    state = fold(events)
    assert state.commands[-1].text == "Use wide loads."
    assert state.is_on_hold("softmax#1")
    assert "softmax#1" in state.retired
    lines = "\n".join(narrated(events)[-3:])
    for words in ("Use wide loads.", "paused by", "retired by"):
        assert words in lines


def test_each_person_is_told_the_instance_of_their_own_fork(
    shell: Shell, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.stopped(home)

    async def give(home: Home, session: str, command: PersonCommand) -> int:
        first, _ = [record_at_rest(home, session, replace(command, by=by)) for by in ("ann", "kim")]
        return first.seq

    monkeypatch.setattr("tui.commands.steer.give", give)
    done = shell("steer", "fork", stored.FIRST, "softmax#1/1")
    forks = list(fold(journal_of(home, stored.FIRST).events).forks)
    assert f": {forks[0]};" in done.err
    assert forks[1] not in done.err


def test_lines_name_instances_of_tasks_with_a_suite() -> None:
    call = "own/rms#1/2/generator/1"
    event = CallFailed(call=call, reason="gave_up", message="no reply")
    assert "own/rms#1 " in narrated([event])[0]
    assert destination(Order("show", text="own/rms#1/2")) == OpenInstance("own/rms#1", 2)
    assert destination(Order("show", text="own/rms#1")) == OpenInstance("own/rms#1")


def test_impossible_command_is_refused_in_one_line(shell: Shell, home: Home) -> None:
    stored.stopped(home)
    for arguments, words in (
        (("stop", stored.FIRST), "not running"),
        (("steer", "unpause", stored.FIRST), "the session is not paused"),
        (("steer", "pause", stored.FIRST, "softmax#7"), "nearest: softmax#1"),
        (("go", stored.FIRST), "no such command 'go'"),
        (("gpu", stored.FIRST, "0", "lend"), "the session has no GPU"),
        (("steer", "extend", stored.FIRST, "--budget-usd", "nan"), "must be a number of US dollars"),
    ):
        done = shell(*arguments)
        assert done.code != 0, arguments
        assert words in one_line(done)


def test_finished_session_refuses_and_stays_finished(shell: Shell, home: Home) -> None:
    stored.finished(home)
    assert "is finished" in one_line(shell("steer", "pause", stored.FIRST))
    assert fold(journal_of(home, stored.FIRST).events).finished
    assert home.files(stored.FIRST).stored


def test_waiting_attempt_is_printed_with_the_command_that_decides(home: Home) -> None:
    recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.CORRECT)
    recorder.record(WaitingForPerson(attempt="softmax#1/1"))
    recorder.close()
    lines = narrated(journal_of(home, stored.FIRST).events)
    assert f"wavedeck accept {stored.FIRST} softmax#1/1 --why TEXT" in lines[-1]


def test_file_of_an_edit_must_be_readable(shell: Shell, home: Home) -> None:
    stored.finished(home)
    done = shell("steer", "edit", stored.FIRST, "softmax#1/2", "gone.py")
    assert "gone.py cannot be read" in one_line(done)
    assert fold(journal_of(home, stored.FIRST).events).finished


def test_title_of_a_finished_session_is_listed_and_found(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.FIRST)
    stored.stopped(home, stored.SECOND)
    assert shell("sessions", "title", stored.FIRST, "Paged attention, night run").code == 0
    state = fold(journal_of(home, stored.FIRST).events)
    assert (state.title, state.finished) == ("Paged attention, night run", True)
    assert home.files(stored.FIRST).stored
    listed = shell("sessions", "list", "--filter", 'title:"night run"').out
    assert "Paged attention, night run" in listed
    assert stored.SECOND not in listed
    assert shell("sessions", "title", stored.SECOND, "two").code == 0
    assert shell("sessions", "show", stored.SECOND).out.startswith(f"{stored.SECOND}: stopped, two\n")
    assert shell("sessions", "title", stored.SECOND, "").code == 0
    assert fold(journal_of(home, stored.SECOND).events).title == ""


def test_title_must_be_one_short_line(shell: Shell, home: Home) -> None:
    stored.finished(home)
    assert "write it as one line" in one_line(shell("sessions", "title", stored.FIRST, "a\nb"))
    assert "shorten it to 80" in one_line(shell("sessions", "title", stored.FIRST, "a" * 81))
    assert "--title: the title has 81 characters" in shell("run", "--title", "a" * 81, "--detach").err


def test_session_may_be_left_out_if_it_is_the_only_one(shell: Shell, home: Home) -> None:
    assert "no sessions yet" in one_line(shell("steer", "pause"))
    stored.stopped(home, stored.FIRST)
    assert shell("steer", "pause").code == 0
    assert shell("steer", "hint", "softmax#1", "Use: wide loads.").code == 0
    assert shell("steer", "unpause").code == 0
    stored.stopped(home, stored.SECOND)
    assert f"2 sessions exist; name one, or latest for {stored.SECOND}" in one_line(
        shell("steer", "retire", "softmax#1")
    )
    assert shell("steer", "pause", "latest:softmax#1").code == 0
    assert shell("steer", "ban", "latest:softmax#1/1").code == 0
    first, second = (fold(journal_of(home, name).events) for name in (stored.FIRST, stored.SECOND))
    assert (first.commands[-1].text, first.on_hold) == ("Use: wide loads.", set())
    assert (second.commands[-1].attempt, second.on_hold) == ("softmax#1/1", {"softmax#1"})


def test_missing_or_further_words_are_wrong_usage(shell: Shell, home: Home) -> None:
    stored.stopped(home)
    for arguments, usage in (
        (("steer", "retire"), "[SESSION] INSTANCE"),
        (("steer", "pause", stored.FIRST, "softmax#1", "softmax#2"), "[SESSION] [INSTANCE]"),
        (("steer", "edit", "softmax#1/1"), "[SESSION] ATTEMPT FILE"),
        (("gpu", "0", "borrow"), "[SESSION] GPU lend|return"),
        (("stop", stored.FIRST, "softmax#1"), "[SESSION]"),
    ):
        done = shell(*arguments)
        assert done.code == 2, arguments
        assert f"{usage}; see wavedeck {arguments[0]}" in one_line(done)
