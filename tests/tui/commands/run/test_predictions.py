"""`wavedeck suites judge NAME FILE`: output, files and exit codes, once with the real judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessions.catalog import list_sessions
from sessions.home import Home
from tests.suites.public import clones
from tests.support.command_line import Shell
from tui.diagnostics import ExitCode


@pytest.fixture
def suite(shell: Shell, home: Home, tmp_path: Path) -> str:
    clone = clones.geak_eval(tmp_path / "clone")
    assert shell("suites", "add", "tbr", str(clone), "--kind", "tritonbench-revised").code == 0
    assert shell("suites", "add", "rocm", str(clone), "--kind", "rocm").code == 0
    return "tbr"


def write(*lines: dict[str, object]) -> str:
    Path("mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "mine.jsonl"


@pytest.mark.judge
def test_predictions_are_judged_once_and_written(shell: Shell, home: Home, suite: str) -> None:
    file = write(
        {"predict": f"```python\n{clones.TRITON}```\n", "file": "scale.py"},
        {"predict": "def scale(x", "file": "scale.py"},
        {"predict": clones.TRITON, "file": "unknown.py"},
    )
    arguments = ("suites", "judge", suite, file, "--devices", "cpu")
    done = shell(*arguments)
    assert done.code == ExitCode.NO  # a line was not judged
    assert "not judged: line 3: the suite has no task 'unknown.py'" in done.err
    assert "2 of 2: tbr/scale#" in done.err
    rows = [line.split()[:3] for line in done.out.splitlines()[:3]]
    assert rows == [["task", "sample", "verdict"], ["scale", "2", "call_error"], ["scale", "1", "correct"]]
    assert "call accuracy 50.0%, execution accuracy 50.0%, over 2 predictions that can be judged" in done.out
    assert "pass@1 50.0%, pass@2 100.0%" in done.out
    (session,) = list_sessions(home)
    assert (session.state, session.settings.method) == ("finished", "predictions")
    results = home.root / "results" / suite / "mine" / "mine_all_passes.json"
    assert [row["exec_status"] for row in json.loads(results.read_bytes())] == [1, 0]
    assert shell("export", session.name, "exported", "--results").code == ExitCode.DONE
    assert Path("exported", f"{session.name}_all_passes.json").read_bytes() == results.read_bytes()

    again = shell(*arguments, "--only", "scale", "--out", "own", "--json")
    assert "2 of 2 have a result already" in again.err
    document = json.loads(again.out)
    assert [result["verdict"] for result in document["results"]] == ["correct", "call_error"]
    assert document["session"] == session.name
    assert Path("own/mine_results_1.json").is_file()
    assert len(list_sessions(home)) == 1


@pytest.mark.judge
def test_solutions_of_a_trace_set_are_judged_and_the_winner_is_one(shell: Shell, tmp_path: Path) -> None:
    assert shell("suites", "add", "traces", str(clones.trace_set(tmp_path / "set"))).code == 0
    solutions = clones.write(
        Path("solutions"),
        {
            "mine.json": clones.solution(),
            "two.json": clones.solution(sources=[{"path": name, "content": "x"} for name in "ab"]),
            "filled.json": clones.solution(spec={"entry_point": "main.py::scale"}),
        },
    )
    done = shell("suites", "judge", "traces", str(solutions), "--devices", "cpu")
    assert done.code == ExitCode.NO
    assert (
        "filled.json: solution mine gets its outputs as arguments; its function must return them" in done.err
    )
    assert "two.json: solution mine has 2 files; it must be one" in done.err
    assert done.out.splitlines()[1].split() == ["scale_d40", "correct", "-"]
    assert shell("export", "latest", "out", "--results").code == ExitCode.DONE
    (file,) = Path("out").rglob("*.json")
    written = json.loads(file.read_bytes())
    assert file.parent == Path("out/solutions/wavedeck/scale/scale_d40")
    assert (written["name"], written["definition"], written["author"]) == (file.stem, "scale_d40", "wavedeck")
    assert written["spec"] == {
        "language": "triton",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        "destination_passing_style": False,
    }
    again = shell("suites", "judge", "traces", str(file), "--devices", "cpu")
    assert (again.code, again.out.splitlines()[1].split()[1]) == (ExitCode.DONE, "correct")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("suites", "judge", "tbr"), "missing argument 'FILE'; see wavedeck suites judge --help"),
        (("suites", "judge", "tbr", "no.jsonl"), "there is no file no.jsonl"),
        (("suites", "judge", "starter", "mine.jsonl"), "no public benchmark has this name"),
        (("suites", "judge", "tbr", "mine.jsonl", "--only", "softmax"), "no prediction is for this task"),
        (("eval",), "missing argument 'FILE'; see wavedeck eval --help"),
    ],
)
def test_wrong_usage_is_one_line(shell: Shell, suite: str, arguments: tuple[str, ...], words: str) -> None:
    write({"predict": clones.TRITON, "file": "scale"})
    done = shell(*arguments, "--devices", "cpu")
    assert done.code == ExitCode.USAGE
    assert words in done.err.splitlines()[-1]


def test_the_original_protocol_of_pytest_suites_is_refused(shell: Shell, suite: str) -> None:
    write({"predict": clones.TRITON, "file": "test_scale"})
    done = shell("suites", "judge", "rocm", "mine.jsonl", "--protocol", "original")
    assert done.code == ExitCode.FAILED
    assert "the original protocol of rocm is not available" in done.err


def test_references_refuse_a_task_that_the_suite_lacks(shell: Shell, suite: str) -> None:
    done = shell("suites", "references", suite, "--task", "unknown", "--devices", "cpu")
    assert done.code == ExitCode.USAGE
    assert "no task is called 'tbr/unknown'" in done.err
