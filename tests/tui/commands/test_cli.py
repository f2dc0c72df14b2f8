"""Commands on stored sessions and suites: output, exit codes and one-line errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ZshComplete

from engine.plan.request import RunPlan
from engine.plan.settings import SETTINGS
from harness import Verdict
from sessions import Home, Store, fold
from sessions import events as ev
from sessions.catalog import journal_of
from sessions.settings import MethodOptions
from tests.support.command_line import ROOT, Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.actions.run_plan import model_of
from tui.cli import COMMANDS, wavedeck
from tui.commands.former import FORMER
from tui.commands.look.show import complete_words
from tui.commands.options import complete_sessions
from tui.commands.sections import OTHER, SECTIONS
from tui.diagnostics import ExitCode
from tui.doctor import examination
from tui.doctor.doctor_findings import State


def test_version_is_printed_and_help_lists_the_commands_in_groups_on_one_line_each(shell: Shell) -> None:
    assert shell("--version").out.startswith("wavedeck")
    lines = shell("--help").out.splitlines()
    assert [line for line in lines if line in ("Work:", "Look:", "Decide:", "Steer:", "Keep:", "Serve:")] == [
        "Work:", "Look:", "Decide:", "Steer:", "Keep:", "Serve:",
    ]  # fmt: skip
    for name, action in COMMANDS.items():
        assert f"  {name:<8}  {action.does}" in lines


@pytest.mark.parametrize("name", FORMER)
def test_former_name_runs_the_new_command_and_names_it(shell: Shell, name: str) -> None:
    command, _, option = name.partition(" ")
    further = ["references"] if command == "suites" else []
    done = shell(command, *further, *([f"{option}=x"] if option else []), "--help")
    assert done.code == 0
    assert done.err.startswith(f"wavedeck: `wavedeck {name}` is now `wavedeck {FORMER[name].now}")
    assert done.out == shell(*FORMER[name].now.split(), *further, "--help").out
    if option.startswith("-"):
        assert f"{option} " not in done.out
    elif not option:
        assert f"\n  {command} " not in shell("--help").out


def test_each_command_that_ever_was_is_a_command_or_a_former_name() -> None:
    names = (
        "run resume eval capture recheck rejudge study mcp propose attach replay status wait show asm profile report compare "
        "best accept reject undo pause unpause retire hint pin ban fork edit measure gpu extend stop sessions task suites "
        "export dataset apply record doctor"
    )
    assert [name for name in names.split() if name not in {*COMMANDS, *FORMER}] == []


def test_unknown_command_names_similar_ones_former_names_too(shell: Shell) -> None:
    for words, message in (
        (("evla",), "no such command 'evla'; nearest: 'eval', 'replay'; see wavedeck --help"),
        (("pasue",), "nearest: 'measure', 'pause', 'unpause'; see wavedeck --help"),
        (("steer", "pasue"), "nearest: 'measure', 'pause', 'unpause'; see wavedeck steer --help"),
        (("run", "--metod", "x"), "no such option '--metod'; nearest: '--method'"),
    ):
        done = shell(*words)
        assert (done.code, message in one_line(done)) == (ExitCode.USAGE, True), words


def test_options_of_former_names_get_their_new_names(shell: Shell, home: Home) -> None:
    stored.finished(home)
    done = shell("wait", stored.FIRST, "--for", "end")
    assert (done.code, done.err.splitlines()[-1]) == (0, f"wavedeck: {stored.FIRST} finished")
    assert shell("best", "--json").out == shell("report", "--best", "--format", "json").out == "[]\n"
    judged = shell("eval", "--suite", "starter", "--predictions=p.jsonl", "--device", "cpu")
    assert judged.err.splitlines()[-1].startswith("wavedeck: starter: no public benchmark has this name")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_its_description_and_fits_80_columns(shell: Shell, name: str) -> None:
    done = shell(name, "--help")
    assert done.code == 0
    assert f"\n  {COMMANDS[name].does.rstrip('.').split()[0]}" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_empty_home_names_the_next_command(shell: Shell, home: Home) -> None:
    done = shell()
    assert done.code == 0
    assert f"no sessions yet in {home.root}" in done.out
    assert "wavedeck run" in done.out
    assert not home.root.exists()
    for words in ("work      run, resume, eval", "decide    accept, reject, undo", "serve     mcp, doctor"):
        assert f"\n{words}" in done.out


def test_completion_of_commands_names_their_groups_in_the_order_of_the_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COMP_WORDS", "wavedeck s")
    monkeypatch.setenv("COMP_CWORD", "1")
    complete = ZshComplete(wavedeck, {}, "wavedeck", "_WAVEDECK_COMPLETE").complete().splitlines()
    names, descriptions = complete[1::3], complete[2::3]
    assert names == [name for name in COMMANDS if name.startswith("s")]
    assert descriptions[0] == f"work: {COMMANDS['study'].does}"
    assert descriptions[-1] == f"keep: {COMMANDS['sessions'].does}"


@pytest.mark.parametrize("name", ["run", "tune", "eval", "study"])
def test_options_of_commands_with_many_stand_in_sections(shell: Shell, name: str) -> None:
    text = shell(*name.split(), "--help").out
    titles = [line.rstrip(":") for line in text.splitlines() if line.rstrip(":") in (*SECTIONS, OTHER)]
    assert titles == [title for title in (*SECTIONS, OTHER) if title in titles]
    assert {"What runs", "Judge and devices", OTHER} <= {*titles}
    assert "Options:" not in text


def test_every_setting_has_a_section() -> None:
    listed = " ".join(SECTIONS.values()).split()
    assert [field.name for field in SETTINGS.values() if field.name not in listed] == []
    assert len({*listed}) == len(listed)


def test_sessions_are_listed_newest_first_with_their_state(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.FIRST)
    stored.stopped(home, stored.SECOND)
    listed = json.loads(shell("sessions", "list", "--json").out)
    assert [(row["name"], row["state"]) for row in listed] == [
        (stored.SECOND, "stopped"),
        (stored.FIRST, "finished"),
    ]
    assert (
        listed[1] | {"method": "geak", "model": "recorded:starter", "tasks": ["starter/softmax"]} == listed[1]
    )
    assert listed[1]["started"] > 0
    text = shell().out
    assert text.index(stored.SECOND) < text.index(stored.FIRST)
    assert f"next: wavedeck resume {stored.SECOND}" in text, "it was stopped"


def test_list_of_sessions_fits_a_narrow_terminal(
    shell: Shell, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.finished(home)
    monkeypatch.setattr("tui.print.plain.width", lambda: 60)
    lines = shell("sessions").out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["session", "state", "solved", "attempts"] or "model" in lines[0]


def test_session_is_shown_by_a_unique_prefix(shell: Shell, home: Home) -> None:
    stored.finished(home)
    done = shell("sessions", "show", stored.FIRST[:12])
    assert done.code == 0
    assert "wrong correct" in done.out
    assert f"wavedeck replay {stored.FIRST}" in done.out
    shown = json.loads(shell("sessions", "show", stored.FIRST, "--json").out)
    assert shown["tasks"] == [
        {
            "task": "starter/softmax",
            "attempts": 2,
            "correct": 1,
            "best": "softmax#1/2",
            "verdict": "correct",
            "confirmation": "not examined",
        }
    ]
    [row] = [line for line in done.out.splitlines() if line.startswith("softmax#1  ")]
    assert row.split(maxsplit=1)[1].split() == [
        "wrong",
        "correct",
        "softmax#1/2",
        "not",
        "examined",
        "2,400",
        "iterations",
    ]
    assert [attempt["verdict"] for attempt in shown["attempts"]] == ["wrong", "correct"]


def test_unknown_or_ambiguous_session_error_names_candidates(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.FIRST)
    stored.finished(home, stored.SECOND)
    unknown = shell("replay", "20260102-030405-geak-aaab")
    assert unknown.code == ExitCode.USAGE
    assert f"nearest: {stored.FIRST}" in one_line(unknown)
    ambiguous = shell("report", "2026")
    assert ambiguous.code == ExitCode.USAGE
    assert "fits 2 names" in one_line(ambiguous)


def test_attempt_is_shown_as_verdict_kernel_changes_or_prompt(shell: Shell, home: Home) -> None:
    stored.stopped(home, stored.FIRST)
    stored.finished(home, stored.SECOND)
    state = fold(journal_of(home, stored.SECOND).events)
    source = state.attempt("softmax#1/2").source or ""
    assert shell("show", "softmax#1/2", "--source").out == source, "of the latest session"
    assert shell("show", stored.SECOND, "softmax#1/2", "--source").out == source
    shown = shell("show", "softmax#1/2").out
    assert shown.startswith(f"softmax#1/2 of {stored.SECOND}: repair of softmax#1/1\n")
    assert "softmax on cpu: correct" in shown
    assert "not examined" in shown
    changes = shell("show", "softmax#1/2", "--diff", "softmax#1/1").out.splitlines()
    assert changes[:2] == ["--- softmax#1/1", "+++ softmax#1/2"]
    assert "+def softmax(x):" in changes
    assert shell("show", "softmax#1/2", "--diff", "softmax#1/2").out == ""
    row = json.loads(shell("show", "softmax#1/1", "--json").out)
    assert (row["attempt"], row["verdict"], row["session"]) == ("softmax#1/1", "wrong", stored.SECOND)
    assert row["evaluation"]["verdict"] == "wrong"
    [message] = state.attempt("softmax#1/1").calls[0].messages
    prompt = shell("show", "softmax#1/1", "--prompt").out
    assert prompt == f"=== {message.role}\n{message.content}\n"
    assert shell("show", "latest:softmax#1/1", "--prompt").out == prompt
    call = state.attempt("softmax#1/1").calls[0]
    assert shell("show", "softmax#1/1", "--reply").out == f"{call.text}\n"
    assert "has no reasoning" in one_line(shell("show", "softmax#1/1", "--reasoning"))
    assert "no attempt 'softmax#1/9'" in one_line(shell("show", "softmax#1/9"))
    assert "exclude each other" in one_line(shell("show", "softmax#1/1", "--source", "--prompt"))


def test_reasoning_of_a_running_call_and_output_of_an_agent_are_shown(shell: Shell, home: Home) -> None:
    with stored.begin(home) as recorder:
        recorder.record(ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH))
        for number in (1, 2):
            call = f"softmax#1/1/generator/{number}"
            started = ev.CallStarted(
                call=call, attempt="softmax#1/1", role=ev.Role.GENERATOR, model="m", messages=()
            )
            recorder.record(started)
            recorder.record(ev.ReplyPiece(call=call, kind="reasoning", text=f"Thought {number}.\n"))
            assert f"Thought {number}." in shell("show", "latest:softmax#1/1", "--reasoning").out
            served = ev.ServedModel(endpoint=ev.AGENT_PROGRAM)
            finished = ev.CallFinished(call=call, text="", reasoning=f"Thought {number}.\n", served=served)
            recorder.record(finished)
    assert shell("show", "softmax#1/1", "--reply").out.splitlines()[:2] == ["Thought 1.", "Thought 2."]


def test_session_whose_prompts_showed_the_reference_says_so_everywhere(shell: Shell, home: Home) -> None:
    recorder = stored.begin(home, options=MethodOptions(show_reference=True))
    for number, verdict in ((1, Verdict.WRONG), (2, Verdict.CORRECT)):
        stored.attempt(recorder, number, verdict)
    stored.finish(recorder)
    stored.finished(home, stored.SECOND)
    words = "prompts showed it where the benchmark hides it"
    for arguments in (("show", stored.FIRST, "softmax#1/2"), ("report", stored.FIRST)):
        assert words in shell(*arguments).out
        assert (
            words not in shell(*(stored.SECOND if word == stored.FIRST else word for word in arguments)).out
        )
    assert json.loads(shell("show", stored.FIRST, "softmax#1/2", "--json").out)["reference_shown"] is True
    assert json.loads(shell("show", stored.SECOND, "softmax#1/2", "--json").out)["reference_shown"] is False
    assert "reference shown" in shell("report", stored.FIRST, "--format", "csv").out


def test_shell_completes_names_titles_and_the_latest(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.FIRST)
    assert shell("sessions", "title", "latest", "night run").code == 0
    context = click.Context(wavedeck)
    words = [item.value for item in complete_sessions(context, click.Argument(["session"]), "")]
    assert words == ["latest", stored.FIRST, "night run"]
    [attempt] = complete_words(click.Context(wavedeck, obj=None), click.Argument(["words"]), "lat")
    assert attempt.value == "latest"
    assert "softmax#1/2" in shell("replay", "night run").out
    assert shell("replay").out == shell("replay", "latest").out


def test_replay_without_a_terminal_prints_every_event(shell: Shell, home: Home) -> None:
    stored.finished(home)
    done = shell("replay", stored.FIRST)
    assert (done.code, done.err) == (0, "")
    lines = [line.partition("softmax#1/2  ")[2].strip() for line in done.out.splitlines()]
    assert "repair of softmax#1/1, 9 lines: store every row" in lines
    assert "wrong: output out differs in 12 % of its elements (kernel.py line 4)" in done.out
    assert done.out.splitlines()[-2].startswith(f"session   {stored.FIRST}, finished after ")


def test_replay_of_a_journal_without_an_attempt_goes_on(shell: Shell, home: Home) -> None:
    stored.stopped(home)
    journal = home.files(stored.FIRST).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"candidate_proposed"' not in line))
    assert shell("replay", stored.FIRST).code == 0
    ending = b'{"type":"instance_finished","task":"starter/softmax","instance":1,"reason":"iterations","best":"x"}\n'
    journal.write_bytes(b"".join([*lines, ending]))
    assert f"session   {stored.FIRST}" in shell("replay", stored.FIRST).out


def test_bad_line_in_the_journal_of_a_stopped_session_is_counted(shell: Shell, home: Home) -> None:
    stored.stopped(home)
    journal = home.files(stored.FIRST).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], b'{"type": "call_st\n', *lines[3:]]))
    done = shell("replay", stored.FIRST)
    assert done.code == 0
    assert one_line(done) == "wavedeck: skipped 1 line of the journal that cannot be read"
    assert "wrong: output out differs" in done.out


def test_decision_on_a_finished_session_is_made_and_undone(shell: Shell, home: Home) -> None:
    stored.finished(home)
    done = shell("accept", stored.FIRST, "softmax#1/2", "--why", "fast and plain")
    assert done.code == 0
    assert f"softmax#1/2 of {stored.FIRST} accepted" in one_line(done)
    assert json.loads(shell("sessions", "--json").out)[0]["accepted"] == ["softmax#1/2"]
    assert "accepted by" in shell("replay", stored.FIRST).out
    assert shell("undo", stored.FIRST, "softmax#1/2").code == 0
    assert json.loads(shell("sessions", "--json").out)[0]["accepted"] == []


def test_wrong_attempt_is_accepted_only_with_force_and_a_reason(shell: Shell, home: Home) -> None:
    stored.finished(home)
    wrong = ("accept", stored.FIRST, "softmax#1/1")
    plain, forced = shell(*wrong, "--why", "x"), shell(*wrong, "--force")
    assert (plain.code, forced.code) == (ExitCode.USAGE, ExitCode.USAGE)
    assert "softmax#1/1 is wrong, and only a correct attempt can be accepted" in one_line(plain)
    assert "give the reason with --why" in one_line(forced)
    with Store.read_only(home.store) as store:
        assert store.accepted() == {}
        assert shell(*wrong, "--force", "--why", "only the exam's tail is off").code == 0
        kernel = store.accepted()["starter/softmax"]
    assert (kernel.verdict, kernel.why) == (Verdict.WRONG, "only the exam's tail is off")


def test_impossible_command_is_a_one_line_error(shell: Shell, home: Home) -> None:
    stored.finished(home)
    for arguments, message in (
        (("accept", stored.FIRST, "softmax#1/9"), "no attempt 'softmax#1/9'"),
        (("reject", stored.FIRST, "softmax"), "no attempt 'softmax'"),
        (("undo", stored.FIRST, "softmax#1/2"), "softmax#1/2"),
        (("attach", stored.FIRST), f"session {stored.FIRST} is not running; see it with: wavedeck replay"),
        (("attach",), f"session {stored.FIRST} is not running; see it with: wavedeck replay"),
        (("study", "geak-table"), "no study and no plan that ships is called 'geak-table'"),
        (("compare", "a.py", "b.py", "--task", "softmax"), "there is no file a.py"),
        (("sessions", "record", stored.FIRST, "Bad Name"), "'Bad Name' cannot name a recording"),
    ):
        done = shell(*arguments)
        assert done.code == ExitCode.USAGE, arguments
        assert message in one_line(done)


def test_delete_removes_finished_sessions_only(
    shell: Shell, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions.catalog.LOCK_WAIT_S", 0.05)
    stored.finished(home, stored.FIRST)
    unsure = shell("sessions", "delete", stored.FIRST)
    assert unsure.code == ExitCode.USAGE
    assert "add --yes" in one_line(unsure)
    assert shell("sessions", "delete", stored.FIRST, "--yes").code == 0
    assert shell("sessions", "--json").out == "[]\n"
    with stored.begin(home, stored.SECOND):
        busy = shell("sessions", "delete", stored.SECOND, "--yes")
        assert busy.code == ExitCode.USAGE
        assert "is running" in one_line(busy)
        assert json.loads(shell("sessions", "--json").out)[0]["state"] == "running"
    assert json.loads(shell("sessions", "--json").out)[0]["state"] == "crashed"


def test_finished_session_can_be_recorded(shell: Shell, home: Home) -> None:
    stored.finished(home)
    done = shell("sessions", "record", stored.FIRST, "mine")
    assert done.code == 0
    assert "wavedeck run --model recorded:mine" in one_line(done)
    assert (home.recordings / "mine" / "recording.toml").is_file()
    again = shell("sessions", "record", stored.FIRST, "mine")
    assert again.code == ExitCode.USAGE
    assert "recording mine already exists" in one_line(again)
    assert "resume it to its end first" in one_line(
        shell("sessions", "record", stored.stopped(home, stored.SECOND), "other")
    )


def test_report_is_written_to_a_file_in_the_format_of_its_ending(
    shell: Shell, home: Home, tmp_path: Path
) -> None:
    stored.finished(home)
    for name, options, begins in (
        ("report.html", (), b"<!doctype html>"),
        ("report.md", (), b"# 2026"),
        ("report.txt", (), b"session   2026"),
        ("report.json", (), b"{"),
        ("report.tex", (), b"% 2026"),
        ("report.csv", (), b"session,series,"),
        ("other.html", ("--format", "md"), b"# 2026"),
    ):
        file = tmp_path / name
        done = shell("report", stored.FIRST, "-o", str(file), *options)
        assert (done.code, done.out) == (0, "")
        assert one_line(done) == f"wavedeck: the report is in {file}"
        assert file.read_bytes().startswith(begins), name


def test_report_that_cannot_be_written_leaves_the_old_file(shell: Shell, home: Home, tmp_path: Path) -> None:
    stored.finished(home)
    missing = shell("report", stored.FIRST, "-o", str(tmp_path / "missing" / "report.md"))
    assert missing.code == ExitCode.USAGE
    assert "the report was not written to" in one_line(missing)
    folder = tmp_path / "folder.md"
    folder.mkdir()
    assert "is not a file" in one_line(shell("report", stored.FIRST, "-o", str(folder)))
    old = tmp_path / "old.md"
    old.write_text("old")
    assert shell("report", "no-such-session", "-o", str(old)).code == ExitCode.USAGE
    assert old.read_text() == "old"


def test_exam_result_is_shown_with_the_best_attempt(shell: Shell, home: Home) -> None:
    recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.CORRECT)
    stored.attempt(recorder, 2, Verdict.CORRECT, source=stored.FAST)
    stored.examine(recorder, 1, Verdict.WRONG)
    stored.examine(recorder, 2, Verdict.CORRECT)
    stored.finish(recorder)
    assert "softmax  correct       confirmed" in shell("replay", stored.FIRST).out
    log = shell("replay", stored.FIRST).out
    assert "softmax#1/1           failed exam: wrong on the exam cases: an exam case is wrong" in log
    assert "softmax#1/2           confirmed by exam" in log
    report = json.loads(shell("report", stored.FIRST, "--format", "json").out)
    assert report["facts"]["tasks"] == "1 of 1 solved, 1 confirmed"
    shown = json.loads(shell("sessions", "show", stored.FIRST, "--json").out)
    assert [attempt["confirmation"] for attempt in shown["attempts"]] == ["failed exam", "confirmed"]
    assert [attempt["exam"] for attempt in shown["attempts"]] == ["wrong", "correct"]
    (listed,) = json.loads(shell("sessions", "list", "--json").out)
    assert listed["confirmed"] == ["starter/softmax"]
    assert shell("sessions").out.splitlines()[1].split()[:4] == [stored.FIRST, "finished", "1/1", "1/1"]
    accepted = shell("accept", stored.FIRST, "softmax#1/2")
    assert "softmax#1/2 of" in accepted.err
    assert "accepted (confirmed by exam)" in accepted.err


def test_unwritable_home_error_names_the_fix(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WAVEDECK_HOME", str(tmp_path / "file" / "home"))
    done = shell("suites", "add", "mine", os.fspath(tmp_path))
    assert done.code == ExitCode.FAILED
    assert "set WAVEDECK_HOME to a folder you may write" in one_line(done)


def test_full_output_device_is_an_error() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tui", "suites", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            check=False,
        )
        silent = subprocess.run(
            [sys.executable, "-m", "tui", "run", "nosuch"], stderr=full, cwd=ROOT, check=False
        )
    assert done.returncode == ExitCode.FAILED
    assert done.stderr == b"wavedeck: standard output cannot be written (No space left on device)\n"
    assert silent.returncode == ExitCode.USAGE


def test_run_refuses_a_home_that_others_can_write_and_doctor_shows_it(shell: Shell, home: Home) -> None:
    home.ensure()
    home.root.chmod(0o777)
    done = shell("run", "softmax")
    assert done.code == ExitCode.FAILED
    assert f"other users can write into {home.root} (mode 0777)" in one_line(done)
    assert f"run: chmod go-rwx {home.root}" in one_line(done)
    [finding] = [
        finding
        for finding in examination.store({"WAVEDECK_HOME": str(home.root)})
        if finding.subject == "privacy"
    ]
    assert (finding.state, finding.follows) == (State.WARNING, "run and resume refuse this home")


def test_run_warns_about_a_home_that_others_can_read(shell: Shell, home: Home) -> None:
    home.ensure()
    home.root.chmod(0o755)
    done = shell("run", "no_such_task")
    assert f"take care: other users can read the home {home.root} (mode 0755)" in done.err


def test_run_without_a_model_uses_the_recording_and_shows_no_key(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    assert model_of(RunPlan(), {}, os.environ)[0] == "recorded:starter"
    done = shell("run", "--instances", "0")
    assert "sk-secret" not in done.err + done.out
