"""`wavedeck report` over several sessions: tables of all attempts, one table alone, and the page with kernels."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest

from harness import Verdict
from sessions import Home
from sessions.metrics.row_cache import rows_of_session
from sessions.settings import MethodOptions
from tests.support.command_line import Shell, one_line
from tests.support.programs import python
from tests.support.sessions import stored_sessions as stored
from tui.commands.look import report
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
    assert "Where the kernels lie" not in text, "one session alone has these sections"
    data = json.loads(shell("report", *two, "--format", "json").out)
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
    assert (
        "no table is called 'error' (did you mean 'errors'?); there are: overall, seeds, winners, "
        in one_line(wrong)
    )
    empty = shell("report", two[0], "--table", "hardware")
    assert empty.code == ExitCode.USAGE
    assert "table 'hardware' has no data in 1 session" in one_line(empty)


def test_page_of_several_sessions_has_the_kernels_of_winners(
    shell: Shell, two: tuple[str, str], tmp_path: Path
) -> None:
    shell("report", *two, "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
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


def test_a_format_that_needs_the_extra_says_how_to_get_it(
    shell: Shell, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    for words in (("--format", "html"), ("-o", "page.tex"), ("--table", "errors"), ()):
        done = shell("report", *two, *words)
        assert done.code == ExitCode.USAGE
        assert one_line(done).endswith(
            "needs pandas, which is not installed; pip install 'wavedeck[reports]'"
        )
    done = shell("report", two[0])
    assert "Winners" in done.out, "plain text has what needs no table over attempts"
    assert "pip install 'wavedeck[reports]'" in one_line(done)


def test_text_of_one_session_loads_no_library_of_the_extra(two: tuple[str, str]) -> None:
    hidden = "import sys\nfor name in ('pandas', 'matplotlib', 'scipy'): sys.modules[name] = None\n"
    code = f"{hidden}from tui.commands.look import report\nreport.find_spec = lambda name: None\n"
    assert "Winners" in python(f"{code}report.report_command(['{two[0]}'], standalone_mode=False)")


def test_columns_of_the_attempts_are_explained(shell: Shell, two: tuple[str, str]) -> None:
    text = shell("report", "--columns").out
    assert "reference_shown  bool      True if prompts showed the reference" in text
    (table,) = json.loads(shell("report", *two, "--table", "attempts", "--format", "json").out)["tables"]
    names = [line.split()[0] for line in text.splitlines()[1:]]
    assert [len(table["rows"]), *table["rows"][0]] == [4, *names]
    text = shell("report", *two, "--table", "attempts")
    assert one_line(text).endswith("add --format csv or --format json")


def test_json_has_one_shape_with_and_without_a_table(shell: Shell, two: tuple[str, str]) -> None:
    whole, alone = (
        json.loads(shell("report", *two, *words, "--format", "json").out)
        for words in ((), ("--table", "errors"))
    )
    assert list(whole) == list(alone)
    assert alone["tables"] == [table for table in whole["tables"] if table["table"] == "errors"]


def test_plots_and_several_files_are_written_at_once(
    shell: Shell, home: Home, two: tuple[str, str], tmp_path: Path
) -> None:
    timed = "20260102-060708-geak-dddd"
    recorder = stored.begin(home, timed)
    stored.attempt(recorder, 1, Verdict.CORRECT, speedup=1.5)
    stored.finish(recorder, best="softmax#1/1")
    files = [tmp_path / f"plots.{ending}" for ending in ("svg", "pdf", "tex")]
    done = shell("report", *two, timed, *(word for file in files for word in ("-o", str(file))))
    assert done.code == ExitCode.DONE
    starts = [file.read_bytes()[:5] for file in files]
    assert starts == [b"<?xml", b"%PDF-", b"% Rep"]
    assert "write it to a file with -o plots.pdf" in one_line(shell("report", *two, "--format", "pdf"))
    assert "there is no plot: nothing was timed" in one_line(shell("report", *two, "-o", str(files[0])))
    page, plots = tmp_path / "page.md", tmp_path / "left-out.svg"
    done = shell("report", *two, "-o", str(page), "-o", str(plots))
    assert page.exists()
    assert not plots.exists()
    assert "left-out.svg is left out" in done.err


def test_sessions_that_showed_the_reference_are_named_and_never_pooled(shell: Shell, home: Home) -> None:
    names = stored.FIRST, stored.SECOND
    for name, shown in zip(names, (False, True), strict=True):
        recorder = stored.begin(home, name, options=MethodOptions(show_reference=shown))
        stored.attempt(recorder, 1, Verdict.CORRECT)
        stored.finish(recorder, best="softmax#1/1")
    data = json.loads(shell("report", *names, "--format", "json").out)
    assert data["facts"]["reference"].endswith(f"not the benchmark's score: {stored.SECOND}")
    tables = {table["table"]: table["rows"] for table in data["tables"]}
    assert [row["method"] for row in tables["overall"]] == ["geak", "geak, reference shown"]
    assert [row["task"] for row in tables["winners"]] == ["softmax", "softmax (reference shown)"]
