"""`wavedeck sessions dataset`: rows on standard output or in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessions import Home
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored


@pytest.mark.parametrize("kind", ["pairs", "transitions"])
def test_rows_are_json_lines(home: Home, shell: Shell, kind: str) -> None:
    session = stored.finished(home)
    (line,) = shell("sessions", "dataset", session, "--format", kind).out.splitlines()
    row = json.loads(line)
    assert (row["kind"], row["task_license"]) == ("exe_fail_to_pass", "Apache-2.0")
    assert row["before"]["error"] == "output out differs in 12 % of its elements\nkernel.py:4 kernel"
    assert (row["before_code"], row["after_code"]) == (stored.SLOW, stored.FAST)
    assert shell("sessions", "dataset", session, "--format", kind, "-o", "rows.jsonl").err.endswith(
        "1 row in rows.jsonl\n"
    )
    assert Path("rows.jsonl").read_text() == line + "\n"


def test_messages_are_the_conversation_of_each_attempt_and_one_is_the_winner(
    home: Home, shell: Shell
) -> None:
    sessions = [stored.finished(home), stored.finished(home, stored.SECOND)]
    rows = [
        json.loads(line)
        for line in shell("sessions", "dataset", *sessions, "--format", "messages").out.splitlines()
    ]
    assert [(row["session"], row["attempt"], row["verdict"]) for row in rows] == [
        (session, f"softmax#1/{number}", verdict)
        for session in sessions
        for number, verdict in ((1, "wrong"), (2, "correct"))
    ]
    assert [row["winner"] for row in rows] == [False, True, False, False], "one a task, over all sessions"
    assert rows[1]["messages"] == [
        {"role": "user", "content": "write softmax"},
        {"role": "assistant", "content": f"```python\n{stored.FAST}```"},
    ]
    assert (rows[0]["task_license"], rows[0]["reference_shown"]) == ("Apache-2.0", False)


@pytest.mark.parametrize("kind", ["pairs", "messages"])
def test_tasks_whose_licence_restricts_training_are_left_out_unless_asked_for(
    home: Home, shell: Shell, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    licences = {"starter": "LicenseRef-Researcher-Reciprocity"}
    monkeypatch.setattr("tui.commands.keep.dataset.suite_licences", lambda _: licences)
    session = stored.finished(home)
    done = shell("sessions", "dataset", session, "--format", kind, "-o", "rows.jsonl")
    assert Path("rows.jsonl").read_text() == ""
    assert "1 task left out, because the licence of its suite restricts training" in done.err
    assert "--any-licence" in done.err
    assert shell("sessions", "dataset", session, "--format", kind, "--any-licence").out


def test_no_row_is_one_line(home: Home, shell: Shell) -> None:
    session = stored.stopped(home)
    done = shell("sessions", "dataset", session)
    assert not done.out
    assert one_line(done).endswith("0 rows; what makes a row: wavedeck sessions dataset --help")
