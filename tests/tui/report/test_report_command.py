"""`wavedeck report` over several sessions: tables of all attempts, one table alone, and the page with kernels and decisions."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest

from sessions import Home
from sessions.metrics.row_cache import rows_of_session
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.diagnostics import ExitCode
from tui.facts.report.document import rows_document
from tui.facts.report.tables import RowSet


@pytest.fixture
def two(shell: Shell, home: Home) -> tuple[str, str]:
    names = stored.finished(home, stored.FIRST), stored.finished(home, stored.SECOND)
    shell("accept", names[1], "softmax#1/2", "--why", "stores & keeps <every> row")
    return names


def test_several_sessions_are_one_report_of_all_attempts(shell: Shell, two: tuple[str, str]) -> None:
    text = shell("report", *two).out
    assert "tasks     1 of 1 solved" in text
    assert "attempts  4 judged, 50 % correct" in text
    assert "4,800 tokens (as recorded)" in text
    assert "Winners of all sessions" in text
    assert "2/2" in text
    assert "Where the kernels lie" not in text, "one session alone has these sections"
    data = json.loads(shell("report", *two, "--format", "json").out)
    assert [row["session"] for row in data["metrics"]] == list(two)
    overall = next(entry for entry in data["tables"] if entry["table"] == "overall")
    assert overall["rows"][0]["n"] == 2


def test_one_table_is_asked_by_name(shell: Shell, two: tuple[str, str]) -> None:
    errors = list(
        csv.DictReader(io.StringIO(shell("report", *two, "--table", "errors", "--format", "csv").out))
    )
    assert [(row["verdict"], row["attempts"], row["of all"]) for row in errors] == [
        ("wrong", "2", "0.5"),
        ("correct", "2", "0.5"),
    ]
    wrong = shell("report", two[0], "--table", "error")
    assert wrong.code == ExitCode.USAGE
    assert "no table is called 'error' (did you mean 'errors'?); there are: overall, winners, " in one_line(
        wrong
    )
    empty = shell("report", two[0], "--table", "hardware")
    assert empty.code == ExitCode.USAGE
    assert "table 'hardware' has no data in 1 session" in one_line(empty)


def test_page_of_several_sessions_has_kernels_and_decisions(
    shell: Shell, two: tuple[str, str], tmp_path: Path
) -> None:
    shell("report", *two, "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "stores &amp; keeps &lt;every&gt; row" in page
    assert page.count("<details>") == 1, "the kernel of the task's winner"
    assert "<h3>Changes from baseline triton</h3>" in page
    assert "def softmax(x):" in page


def test_session_without_a_verdict_is_named(shell: Shell, home: Home, two: tuple[str, str]) -> None:
    empty = "20260102-050607-geak-cccc"
    stored.finish(stored.begin(home, empty), best="")
    done = shell("report", *two, empty)
    assert f"no attempt yet in {empty}" in done.out
    assert "sessions    2: " in done.out
    assert "reasons of a winner: wavedeck report SESSION" in one_line(done)


def test_second_judgement_beside_the_first_is_said(shell: Shell, home: Home, two: tuple[str, str]) -> None:
    assert "they count twice" not in shell("report", *two).out
    rows = [row for name in two for row in rows_of_session(home, name)]
    again = [msgspec.structs.replace(row, session="again", method="rejudge") for row in rows]
    assert "they count twice" in rows_document(RowSet((*rows, *again))).facts["caution"]
