"""Errors of the command line: exit codes, one-line messages, crash files and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import EngineUnreachable, UsageProblem
from harness.wire.errors import HarnessError, UnknownTarget
from sessions import Home
from sessions.errors import HomeNotWritable, NoSuchSession
from suites.errors import UnknownTask
from tests.support.command_line import ROOT, Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.diagnostics import Complaint, ExitCode, code_of, report


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Complaint("no"), ExitCode.USAGE),
        (UsageProblem("no"), ExitCode.USAGE),
        (UnknownTask("x", known=()), ExitCode.USAGE),
        (UnknownTarget("no"), ExitCode.USAGE),
        (NoSuchSession("x"), ExitCode.USAGE),
        (HomeNotWritable(Path("/x"), why="no"), ExitCode.FAILED),
        (EngineUnreachable("no"), ExitCode.FAILED),
        (HarnessError("no"), ExitCode.FAILED),
        (ValueError("no"), None),
    ],
)
def test_each_known_error_has_its_exit_code(error: Exception, code: ExitCode | None) -> None:
    assert code_of(error) is code


def test_unexpected_error_is_one_line_and_a_crash_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyError) as caught:
        raise KeyError("first\nsecond\x1b[2J")
    assert report(caught.value, crashes=tmp_path / "crashes") is ExitCode.FAILED
    (file,) = (tmp_path / "crashes").iterdir()
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert str(file) in message
    assert "\x1b" not in message
    assert "Traceback" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_crash_file_is_written_elsewhere_if_the_home_is_unwritable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert report(RuntimeError("x"), crashes=tmp_path / "file" / "crashes") is ExitCode.FAILED
    place = Path(capsys.readouterr().err.rpartition(" in ")[2].strip())
    assert "RuntimeError" in place.read_text()
    place.unlink()


def test_every_error_of_a_group_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = ExceptionGroup("tasks", [UsageProblem("one"), ExceptionGroup("more", [EngineUnreachable("two")])])
    assert report(group, crashes=tmp_path) is ExitCode.FAILED
    assert capsys.readouterr().err == "wavedeck: one\nwavedeck: two\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rnu",), "no such command 'rnu'; nearest: 'run'; see wavedeck --help"),
        (("run", "--instnces", "2"), "--instances"),
        (("eval", "kernel.py"), "there is no file kernel.py; give the path of one Python module"),
        (("run", "kernel.py:rms"), "there is no file kernel.py; give the path of one Python module"),
        (("replay", "x", "--speed", "1000"), "1000.0 is not in the range 0.5<=x<=100"),
        (("report",), "no session 'latest'; there are none yet; start one with: wavedeck run TASK"),
        (
            ("report", "-o", "report.docx"),
            "no format has the ending of report.docx; use .txt, .md, .tex, .html, .json, .csv",
        ),
        (("run", "--detach", "--headless"), "--detach and --headless exclude each other"),
    ],
)
def test_wrong_command_line_is_one_line_that_names_help(
    shell: Shell, arguments: tuple[str, ...], message: str
) -> None:
    done = shell(*arguments)
    assert done.code == ExitCode.USAGE
    assert done.out == ""
    assert message in one_line(done)


def test_closed_pipe_is_no_error() -> None:
    # The reader is gone before the first line is written.
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "tui", "suites"], stdout=theirs, stderr=subprocess.PIPE, cwd=ROOT, timeout=60,
        check=False,
    )  # fmt: skip
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


def test_interrupt_exits_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "eval", "-", "--task", "softmax"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        # A background job may ignore interrupts, and child processes inherit this setting.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        wait_until_reading(process.pid)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert err.decode().strip() == "wavedeck: interrupted"


def wait_until_reading(pid: int) -> None:
    """Return as soon as the process blocks in a read of its standard input."""
    while True:
        call = Path(f"/proc/{pid}/syscall").read_text().split()
        if call[0] == "0" and call[1] == "0x0":
            return


def test_file_that_the_system_refuses_is_one_line_and_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "journal.jsonl"
    folder.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        folder.read_bytes()
    assert report(caught.value, crashes=tmp_path / "crashes") is ExitCode.FAILED
    assert capsys.readouterr().err == (
        f"wavedeck: {folder} cannot be used (Is a directory); "
        "a folder is where a file belongs: move it away and try again\n"
    )
    assert not (tmp_path / "crashes").exists()


def test_store_without_a_readable_configuration_is_named(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.FIRST)
    (home.store / "config").write_bytes(b"\x82\xff[")
    done = shell("sessions")
    assert done.code == ExitCode.FAILED
    assert f"{home.store / 'config'} is no configuration of git" in one_line(done)
