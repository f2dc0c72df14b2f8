"""Every command understands `latest`, a study's name and a left-out SESSION in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from sessions import Home
from sessions import events as ev
from sessions import recorded_example as example
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.cli import COMMANDS, wavedeck
from tui.commands.former import VERBS
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, ExitCode

STUDY = "tables-ab12"
THIRD = "20260102-050607-geak-cccc"
PLACE = "softmax#1/2"

LATEST: dict[str, tuple[str, ...]] = {
    "run": (), "eval": (), "tune": (), "study": (), "suites": (), "task": (), "capture": (), "doctor": (),
    "resume": ("resume", "latest"),
    "attach": ("attach", "latest"),
    "replay": ("replay", "latest"),
    "status": ("status", "latest"),
    "show": ("show", f"latest:{PLACE}"),
    "asm": ("asm", f"latest:{PLACE}"),
    "profile": ("profile", f"latest:{PLACE}"),
    "report": ("report", "latest"),
    "compare": ("compare", "latest", stored.FIRST),
    "accept": ("accept", f"latest:{PLACE}"),
    "reject": ("reject", f"latest:{PLACE}"),
    "undo": ("undo", f"latest:{PLACE}"),
    "gpu": ("gpu", "latest", "0", "lend"),
    "stop": ("stop", "latest"),
    "steer pause": ("steer", "pause", "latest:softmax#1"),
    "steer unpause": ("steer", "unpause", "latest"),
    "steer retire": ("steer", "retire", "latest:softmax#1"),
    "steer hint": ("steer", "hint", "latest:softmax#1", "Use wide loads."),
    "steer pin": ("steer", "pin", f"latest:{PLACE}"),
    "steer ban": ("steer", "ban", f"latest:{PLACE}"),
    "steer fork": ("steer", "fork", f"latest:{PLACE}"),
    "steer edit": ("steer", "edit", f"latest:{PLACE}", "kernel.py"),
    "steer measure": ("steer", "measure", f"latest:{PLACE}"),
    "steer extend": ("steer", "extend", "latest", "--iterations", "1"),
    "sessions": ("sessions", "show", "latest"),
    "export": ("export", f"latest:{PLACE}", "out"),
    "apply": ("apply", f"latest:{PLACE}", "--to", "missing"),
    "recheck": ("recheck", "latest", "--devices", "99"),
    "mcp": ("mcp", "call", "eval", "latest", "kernel.py"),
}  # fmt: skip
"""An example of each command with the newest session; empty for commands without a session."""
UNKNOWN = (
    "no session",
    "no attempt '",
    "; name one,",
    "; name one of",
    "arguments are",
    "too much",
    "missing argument",
)


def test_table_has_every_command() -> None:
    assert {*LATEST} == ({*COMMANDS} - {"steer"}) | {f"steer {verb}" for verb in VERBS}


@pytest.mark.parametrize("name", [name for name, words in LATEST.items() if words])
def test_latest_names_the_newest_session_in_every_command(
    shell: Shell, home: Home, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(stored.FAST)

    async def give(home: Home, session: str, command: ev.PersonCommand) -> int:
        raise Complaint(f"for {session}: {command}")  # an engine would start

    monkeypatch.setattr("tui.commands.steer.give", give)
    stored.finished(home, stored.FIRST)
    stored.finished(home, stored.SECOND)
    done = shell(*LATEST[name])
    assert [words for words in UNKNOWN if words in done.err] == []
    assert "unexpected" not in done.err
    if name.split()[0] in {"accept", "reject", "undo", "gpu", "stop", "steer"}:
        assert f"for {stored.SECOND}: " in done.err
    assert stored.FIRST not in done.err, "it is about the newest"


def study(home: Home, *states: str) -> None:
    """Write a study with a session for each state."""
    names = (stored.FIRST, stored.SECOND, THIRD)
    for cell, (name, state) in enumerate(zip(names, states, strict=False), start=1):
        recorder = stored.begin(home, name, series=f"{STUDY}/{cell}")
        stored.attempt(recorder, 1, stored.Verdict.WRONG)
        stored.attempt(recorder, 2, stored.Verdict.CORRECT, source=stored.FAST)
        if state == "finished":
            stored.finish(recorder)
        else:
            recorder.record(ev.EngineStopped(reason="asked to"))
            recorder.now(recorder.flush())
            recorder.close()


def test_study_stands_for_its_session_that_is_not_finished(shell: Shell, home: Home) -> None:
    study(home, "finished", "stopped", "finished")
    assert shell("show", STUDY, PLACE).out.startswith(f"{PLACE} of {stored.SECOND}:")
    assert shell("show", f"{STUDY}:{PLACE}").out.startswith(f"{PLACE} of {stored.SECOND}:")
    assert f"{PLACE} of {stored.SECOND} accepted" in shell("accept", STUDY, PLACE).err
    assert f"end the pause with: wavedeck steer unpause {stored.SECOND}" in shell("steer", "pause", STUDY).err
    assert f"session   {stored.SECOND}" in shell("replay", STUDY).out
    assert f"session {stored.SECOND} is not running; go on with" in one_line(shell("attach", STUDY))


def test_study_stands_for_its_session_that_runs(shell: Shell, home: Home) -> None:
    study(home, "stopped")
    with stored.begin(home, stored.SECOND, series=f"{STUDY}/2") as recorder:
        stored.attempt(recorder, 1, stored.Verdict.CORRECT)
        assert shell("show", STUDY, "softmax#1/1").out.startswith(f"softmax#1/1 of {stored.SECOND}:")
        [running] = json.loads(shell("status", STUDY, "--json").out)
        assert running["name"] == stored.SECOND
        assert shell("status", STUDY, "--wait", "end", "--timeout", "0").code == ExitCode.NO


def test_studies_are_completed_where_sessions_are(home: Home) -> None:
    study(home, "finished", "finished")
    items = complete_sessions(click.Context(wavedeck), click.Argument(["session"]), "tab")
    assert [(item.value, item.help) for item in items] == [(STUDY, "study")]


def test_study_with_several_sessions_to_choose_from_names_the_command_that_lists_them(
    shell: Shell, home: Home
) -> None:
    study(home, "finished", "finished")
    for command in (("show", STUDY, PLACE), ("replay", STUDY), ("resume", STUDY), ("stop", STUDY)):
        done = shell(*command)
        assert done.code == ExitCode.USAGE
        assert f"study {STUDY} has 2 sessions; name one of them; list them with: wavedeck study {STUDY}" in (
            one_line(done)
        )


def test_commands_about_several_sessions_take_all_of_a_study(
    shell: Shell, home: Home, tmp_path: Path
) -> None:
    study(home, "finished", "finished")
    assert f"no session of {STUDY} runs" in one_line(shell("status", STUDY))
    for command in (("study", STUDY), ("sessions", "show", STUDY)):
        text = shell(*command).out
        assert f"{stored.FIRST}  finished" in text
        assert f"{stored.SECOND}  finished" in text
    for command in (("study", STUDY, "--json"), ("sessions", "show", STUDY, "--json")):
        assert [cell["name"] for cell in json.loads(shell(*command).out)] == [stored.FIRST, stored.SECOND]
    assert shell("export", STUDY, str(tmp_path / "out")).code == 0
    for name in (stored.FIRST, stored.SECOND):
        assert (tmp_path / "out" / name / "starter/softmax").is_dir()
    assert f"2 sessions of {STUDY} deleted" in one_line(shell("sessions", "delete", STUDY, "-y"))
    assert shell("sessions", "--json").out == "[]\n"


def test_example_is_read_like_any_other_session(shell: Shell, home: Home) -> None:
    shown = json.loads(shell("sessions", "show", "example", "--json").out)["session"]
    assert (shown["name"], shown["state"]) == (example.NAME, "finished")
    assert f"see it with: wavedeck replay {example.NAME}" in one_line(shell("attach", "example"))
    stored.finished(home)
    assert "no session" not in one_line(shell("asm", "example:softmax#1/1"))


def test_attempt_without_a_session_is_of_the_one_that_runs_or_of_the_newest(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.SECOND)
    with stored.begin(home, stored.FIRST) as recorder:
        stored.attempt(recorder, 1, stored.Verdict.CORRECT)
        assert shell("show", "softmax#1/1").out.startswith(f"softmax#1/1 of {stored.FIRST}:")
    assert shell("show", "softmax#1/1").out.startswith(f"softmax#1/1 of {stored.SECOND}:")
