"""Commands on a home whose store lost or refuses something: what they print, and how they exit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness import Verdict
from sessions import Home, SessionFiles, list_sessions
from sessions.catalog import SessionList
from sessions.events import WaitingForPerson
from sessions.journal.journal import read_journal
from tests.support.command_line import Shell, one_line, start
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import lose
from tests.support.waiting import wait_until
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.home.home_view import preview_lines, session_row
from tui.diagnostics import ExitCode
from tui.doctor import examination
from tui.doctor.doctor_findings import State

RUN = ("run", "vector_add", "--model", "recorded:mine", "--devices", "cpu", "--iterations", "2")


def stored_only(home: Home, session: str = stored.FIRST) -> None:
    """Store a stopped session without live files, as a clone of a store has it."""
    stored.stopped(home, session, verdict=Verdict.CORRECT)
    shutil.rmtree(home.files(session).folder)


@pytest.mark.usefixtures("scripted_judge", "engines")
def test_run_that_the_store_refuses_exits_with_3_and_can_be_resumed(shell: Shell, home: Home) -> None:
    stored.vector_add_recording(home, "mine")
    with start(*RUN, "--review", "manual", "--headless") as run:
        wait_until(lambda: waiting(home), "an attempt that waits")
        [(live, attempt)] = waiting(home)
        branch = home.store / "refs" / "heads" / live.session / "_journal"
        branch.unlink()
        (branch / "in the way").mkdir(parents=True)
        assert shell("accept", live.session, attempt, "--why", "right").code == ExitCode.DONE
        out, err = run.communicate()
    assert run.returncode == ExitCode.FAILED, out + err
    assert "cannot be written" in out
    assert f"wavedeck resume {live.session}" in out
    assert [info.state for info in list_sessions(home)] == ["stopped"]


def waiting(home: Home) -> list[tuple[SessionFiles, str]]:
    """Return the attempts that wait for a person, with their session."""
    return [
        (live, event.attempt)
        for live in home.session_folders()
        if live.journal.exists()
        for event in read_journal(live.journal).events
        if isinstance(event, WaitingForPerson)
    ]


def test_session_that_the_store_lost_is_damaged_and_the_others_are_listed(shell: Shell, home: Home) -> None:
    stored.stopped(home, stored.SECOND)
    stored_only(home)
    lost = lose(home, f"{stored.FIRST}/_journal:journal/00000001.jsonl")
    done = shell("sessions")
    assert done.code == ExitCode.DONE
    assert f"{stored.FIRST} is damaged: the store" in one_line(done)
    assert f"{lost.parent.name}{lost.name}" in done.err
    assert "wavedeck doctor --repair" in done.err
    states = [(info.name, info.state) for info in list_sessions(home)]
    assert states == [(stored.SECOND, "stopped"), (stored.FIRST, "damaged")]
    assert SessionList(home).read() == list_sessions(home)
    assert shell("report", "--best").code == ExitCode.DONE
    [finding] = [f for f in examination.store(os.environ) if f.subject == "sessions"]
    assert finding.state is State.WARNING
    assert f"{stored.FIRST} is damaged" in finding.found
    assert "wavedeck doctor --repair" in finding.follows


def test_session_with_a_damaged_branch_is_damaged(shell: Shell, home: Home) -> None:
    stored_only(home)
    (home.store / "refs" / "heads" / stored.FIRST / "_journal").write_bytes(b"\0\xff garbage")
    done = shell("sessions", "--json")
    [listed] = json.loads(done.out)
    assert (listed["name"], listed["state"]) == (stored.FIRST, "damaged")
    replayed = shell("replay", stored.FIRST)
    assert replayed.code == ExitCode.FAILED
    assert f"branch {stored.FIRST}/_journal is damaged" in one_line(replayed)
    assert "wavedeck doctor --repair" in replayed.err


def test_session_whose_journal_is_a_folder_is_damaged(shell: Shell, home: Home) -> None:
    stored.stopped(home, stored.SECOND)
    (home.files(stored.FIRST).journal / "x").mkdir(parents=True)
    assert [info.state for info in list_sessions(home)] == ["stopped", "damaged"]
    assert SessionList(home).read() == list_sessions(home)
    assert "cannot be read (it is no regular file)" in one_line(shell("sessions"))
    assert shell("report", "--best").code == ExitCode.DONE
    for command in (
        ("replay", stored.FIRST),
        ("report", stored.FIRST),
        ("steer", "fork", stored.FIRST, "softmax#1/1"),
    ):
        shown = shell(*command)
        assert shown.code == ExitCode.FAILED
        assert "journal.jsonl cannot be read (it is no regular file)" in one_line(shown)
    repaired = shell("doctor", "--repair")
    assert repaired.code == ExitCode.FAILED
    assert "cannot be read (it is no regular file)" in repaired.out


def test_damaged_head_is_named_with_its_repair(shell: Shell, home: Home) -> None:
    stored.finished(home)
    head = home.store / "HEAD"
    for content in (b"", b"\0\0\0", None):
        head.unlink()
        if content is not None:
            head.write_bytes(content)
        for command in (("sessions",), ("report", "--best")):
            done = shell(*command)
            assert done.code == ExitCode.FAILED
            assert str(head) in one_line(done)
            assert "remove" not in done.err
            assert "wavedeck doctor --repair" in done.err


def test_doctor_names_the_damage_and_its_step_and_repairs_it(shell: Shell, home: Home) -> None:
    stored.stopped(home, stored.SECOND)
    stored_only(home)
    lose(home, f"{stored.FIRST}/_journal:session.json")
    (home.store / "HEAD").write_bytes(b"")
    done = shell("doctor", "--repair")
    assert (done.code, done.err) == (ExitCode.DONE, "")
    assert done.out.splitlines() == [
        f"the store's file {home.store / 'HEAD'} is empty",
        f"  will make a new store of all that git can still read, and keep this one in {home.store / 'damaged'}",
        "  done",
        f"the store lost {stored.FIRST}",
        "  will write it again from its journal",
        "  done",
        "2 damages, 0 left",
    ]
    assert {info.state for info in list_sessions(home)} == {"stopped"}
    assert shell("doctor", "--repair").out == f"no damage in {home.store}\n"


def test_doctor_says_what_it_cannot_repair(shell: Shell, home: Home) -> None:
    stored_only(home)
    lose(home, f"{stored.FIRST}/_journal:journal/00000001.jsonl")
    done = shell("doctor", "--repair")
    assert done.code == ExitCode.FAILED
    assert f"the journal of {stored.FIRST} is damaged" in done.out
    assert "cannot be repaired here: " in done.out
    assert done.out.endswith("2 damages, 1 left\n")
    assert shell("doctor", "--repair", "--json").code == ExitCode.USAGE


def test_cockpit_lists_a_damaged_session_with_what_to_do(home: Home) -> None:
    stored.stopped(home, stored.SECOND)
    stored_only(home)
    lose(home, f"{stored.FIRST}/_journal:journal/00000001.jsonl")
    damaged, whole = sorted(SessionList(home).read(), key=lambda info: info.name)
    assert session_row(damaged).cells[-1].text == "damaged"
    assert session_row(whole).cells[-1].text == "stopped"
    assert "wavedeck doctor --repair" in " ".join(
        map(plain, preview_lines(damaged, None, now=0.0, width=200, height=9))
    )


@pytest.mark.parametrize("command", [(), ("status",), ("sessions",), ("report", "--best")])
def test_home_that_is_a_file_is_an_error(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WAVEDECK_HOME", str(tmp_path / "file"))
    done = shell(*command)
    assert done.code == ExitCode.FAILED
    assert "cannot be read" in one_line(done)
