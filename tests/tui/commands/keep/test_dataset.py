"""`wavedeck dataset`: rows on standard output or in a file, and winners as importable modules with their evidence."""

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
    (line,) = shell("dataset", kind, session).out.splitlines()
    row = json.loads(line)
    assert (row["kind"], row["task_license"]) == ("exe_fail_to_pass", "Apache-2.0")
    assert row["before"]["error"] == "output out differs in 12 % of its elements\nkernel.py:4 kernel"
    assert (row["before_code"], row["after_code"]) == (stored.SLOW, stored.FAST)
    assert shell("dataset", kind, session, "-o", "rows.jsonl").err.endswith("1 row in rows.jsonl\n")
    assert Path("rows.jsonl").read_text() == line + "\n"


def test_winners_are_modules_with_a_readme(home: Home, shell: Shell) -> None:
    sessions = [stored.finished(home), stored.finished(home, stored.SECOND)]
    assert shell("dataset", "winners", *sessions, "-o", "won").code == 0
    names = sorted(file.name for file in Path("won").iterdir())
    assert names == ["README.md", "__init__.py", "softmax_kernel.py", "softmax_kernel_2.py"]
    assert Path("won/softmax_kernel.py").read_text() == stored.FAST
    readme = Path("won/README.md").read_text()
    assert "## softmax_kernel_2.py\n\n- kernel: softmax#1/2 of session " + stored.SECOND in readme
    assert "- licence of the task's suite: Apache-2.0" in readme
    assert "won is not an empty folder" in one_line(shell("dataset", "winners", *sessions, "-o", "won"))


def test_session_without_a_right_kernel_has_no_winners(home: Home, shell: Shell) -> None:
    assert "no correct kernel" in one_line(shell("dataset", "winners", stored.stopped(home), "-o", "won"))
    assert not Path("won").exists()


def test_no_row_and_no_command_are_one_line(home: Home, shell: Shell) -> None:
    done = shell("dataset", "pairs", stored.stopped(home))
    assert not done.out
    assert one_line(done).endswith("0 rows; what makes a row: wavedeck dataset pairs --help")
    missing = one_line(shell("dataset"))
    assert missing.endswith("missing command: pairs, transitions, winners; see wavedeck dataset --help")
