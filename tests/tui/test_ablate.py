"""`wavedeck ablate`: its table, continuation after an interruption, and a second run from a recording."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal

import pytest

from engine.plan.ablation import ROWS, Ablation, settle
from engine.plan.job import session_started
from engine.plan.plan import RunPlan, resolve
from harness import Verdict
from sessions import Home, Recorder, fold
from sessions import events as ev
from sessions.catalog import journal_of, list_sessions
from tests.conftest import SOAK
from tests.support import stored_sessions as stored
from tests.support.command_line import Shell, one_line, scripted_judge, start
from tests.support.live_engines import right, wrong
from tests.support.model_server import Answer, ModelServer, Seen, hangs, model_server, refuses, says
from tests.support.waiting import LIMIT_S, wait_until
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.header import header_line
from tui.cockpit.screens.home.home_view import session_row
from tui.diagnostics import ExitCode
from tui.print.narrate import Narrator, log

__all__ = ["scripted_judge"]
OPTIONS = ("vector_add", "--model", "anthropic:test", "--instances", "2", "--iterations", "3")
OUTCOMES = {1: "WW", 2: "WC", 3: "CC", 4: "CC", 5: "CW", 6: "CC", 7: "WX"}
"""Verdicts of the instances of each row: C correct, W wrong, X call error."""
VERDICTS = {"C": Verdict.CORRECT, "W": Verdict.WRONG, "X": Verdict.CALL_ERROR}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-that-works")


def settled(home: Home) -> Ablation:
    home.ensure()
    plan = RunPlan(model="anthropic:test", tasks=("vector_add",), instances=2, iterations=3)
    return settle(plan, home=home, environ=os.environ)


def record(
    home: Home,
    ablation: Ablation,
    number: int,
    outcomes: str,
    *,
    finished: bool = True,
    speedup: float | None = None,
    reply: str = "x",
) -> str:
    """Record the session of a row with these verdicts and return its name."""
    plan = resolve(ablation.row_plan(ROWS[number - 1]), home=home, environ=os.environ)
    with Recorder.begin(home, session_started(plan)) as recorder:
        recorder.record(ev.EngineStarted(host="here", pid=1))
        for instance, outcome in enumerate(outcomes, start=1):
            name = f"vector_add#{instance}/1"
            recorder.record(ev.InstanceStarted(task="starter/vector_add", instance=instance))
            recorder.record(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH))
            call = f"{name}/generator/1"
            recorder.record(
                ev.CallStarted(call=call, attempt=name, role=ev.Role.GENERATOR, model="m", messages=())
            )
            recorder.record(ev.CallFinished(call=call, text=reply, usage=ev.Usage(1000, 100, 0)))
            verdict = VERDICTS[outcome]
            timed = speedup if verdict is Verdict.CORRECT else None
            recorder.record(
                ev.AttemptJudged(
                    attempt=name, evaluation=stored.evaluation(verdict, speedup=timed, message="no")
                )
            )
            recorder.record(
                ev.InstanceFinished(task="starter/vector_add", instance=instance, reason="iterations")
            )
        if finished:
            recorder.record(ev.SessionFinished())
    return plan.session


@pytest.fixture
def whole(home: Home) -> dict[int, str]:
    """Sessions by row of an ablation whose rows are all finished."""
    ablation = settled(home)
    return {number: record(home, ablation, number, outcomes) for number, outcomes in OUTCOMES.items()}


def test_finished_ablation_prints_its_table_and_runs_nothing(
    shell: Shell, whole: dict[int, str], home: Home
) -> None:
    done = shell("ablate", *OPTIONS)
    assert done.code == ExitCode.DONE, done.err
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if re.match(r"\s+\d  o", line)}
    assert rows["1"][1:8] == ["off", "off", "off", "on", "2", "100%", "0%"]
    assert rows["4"][1:9] == ["on", "on", "on", "on", "2", "100%", "100%", "34%-100%"]
    assert rows["7"][1:8] == ["on", "on", "on", "off", "2", "50%", "0%"]
    assert all(session in done.out for session in whole.values())
    assert "nothing is timed on device cpu" in done.out
    assert f"wavedeck record {' '.join(whole.values())} NAME" in done.err
    assert len(list_sessions(home)) == len(ROWS)


def test_contribution_is_resolved_only_if_its_interval_excludes_zero(
    shell: Shell, whole: dict[int, str]
) -> None:
    report = json.loads(shell("ablate", *OPTIONS, "--json").out)
    by_rows = {
        (contribution["row_on"], contribution["row_off"]): contribution
        for contribution in report["contributions"]
    }
    assert (by_rows[4, 3]["module"], by_rows[4, 3]["difference"], by_rows[4, 3]["resolved"]) == (
        "optimizer",
        0,
        False,
    )
    reflection = by_rows[4, 7]
    assert reflection["difference"] == 1
    assert reflection["low"] == pytest.approx(0.0696, abs=1e-3)
    assert reflection["resolved"]
    assert not by_rows[2, 1]["resolved"], "1 of 2 against 0 of 2 is no significant difference"


def test_every_format_has_the_same_rows(shell: Shell, whole: dict[int, str]) -> None:
    table = list(csv.DictReader(io.StringIO(shell("ablate", *OPTIONS, "--format", "csv").out)))
    assert [row["session"] for row in table] == list(whole.values())
    assert [row["correct"] for row in table] == [str(outcomes.count("C")) for outcomes in OUTCOMES.values()]
    assert table[0]["speedup_mean"] == "", "an unmeasured speedup is empty"
    assert (table[0]["input_tokens"], table[0]["output_tokens"]) == ("2000", "200")
    markdown = shell("ablate", *OPTIONS, "--format", "md").out
    assert "| row | knowledge | one-shot | optimizer | reflection | n |" in markdown
    assert all(f"| {session} |" in markdown for session in whole.values())


def test_measured_speedups_are_reported(shell: Shell, home: Home) -> None:
    ablation = settled(home)
    for number, outcomes in OUTCOMES.items():
        record(home, ablation, number, outcomes, speedup=2.0)
    report = json.loads(shell("ablate", *OPTIONS, "--json").out)
    assert [row["speedup_mean"] for row in report["rows"]] == [None, 2.0, 2.0, 2.0, 2.0, 2.0, None]


def test_too_few_chains_are_a_usage_error(shell: Shell, home: Home) -> None:
    stored.vector_add_recording(home, "mine")
    done = shell("ablate", "vector_add", "--model", "recorded:mine", "--instances", "2")
    assert done.code == ExitCode.USAGE
    assert re.search(r"needs 14 chains of vector_add, and recorded:mine holds \d", one_line(done))


def test_switched_off_modules_are_shown_everywhere(shell: Shell, whole: dict[int, str], home: Home) -> None:
    words = "without optimizer"
    shown = json.loads(shell("sessions", "show", whole[3], "--json").out)
    assert shown["started"]["options"]["without"] == ["optimizer"]
    assert shown["session"]["series"].startswith("ablation-")
    page = shell("sessions", "show", whole[3]).out
    assert f"geak ({words}) with" in page
    assert "part of ablation-" in page
    listed = {line.split()[0]: line for line in shell("sessions").out.splitlines()}
    assert listed[whole[3]].endswith(words)
    assert "without" not in listed[whole[4]]
    infos = {info.name: info for info in list_sessions(home)}
    assert f"geak ({words})" in [cell.text for cell in session_row(infos[whole[3]]).cells]
    assert f"geak ({words}) with anthropic:test" in shell("report", whole[3], whole[4]).out
    reported = json.loads(shell("report", whole[3], whole[4], "--format", "json").out)
    assert [row["options"] for row in reported] == [words, ""]
    events = journal_of(home, whole[3]).events
    assert any(f"geak ({words}) with" in line for line in log(fold(events)))
    assert f"geak ({words}) with" in Narrator().lines(events[0])[0]
    header = header_line(fold(events), (), name="s", status=(), concerns=(), width=160)
    assert f"geak ({words})  anthropic:test" in plain(header)


# With engines


def answer(seen: Seen) -> Answer:
    """Model that is wrong at first, and correct after its own reflection is in the prompt."""
    if "Do not write the module" in seen.prompt:
        return says("The sign.")
    return says(right() if "The sign." in seen.prompt else wrong())


def options_for(server: ModelServer) -> tuple[str, ...]:
    return (
        "vector_add",
        "--model",
        f"openai:test@{server.openai_url}",
        "--instances",
        "1",
        "--iterations",
        "2",
    )


def rows_before(home: Home, model: str, last: int) -> None:
    """Record the first `last` rows of an ablation; each row solved its instance at once."""
    home.ensure()
    plan = RunPlan(model=model, tasks=("vector_add",), instances=1, iterations=2)
    ablation = settle(plan, home=home, environ=os.environ)
    for number in range(1, last + 1):
        record(home, ablation, number, "C", reply=right())


@pytest.mark.judge
@pytest.mark.usefixtures("scripted_judge")
@pytest.mark.parametrize(
    "recorded_rows",
    [6, pytest.param(0, marks=pytest.mark.skipif(not SOAK, reason="14 sessions with engines of their own"))],
)
def test_ablation_from_its_recording_gives_the_same_table(
    shell: Shell, home: Home, engines: None, monkeypatch: pytest.MonkeyPatch, recorded_rows: int
) -> None:
    """`recorded_rows` rows exist before each run."""
    monkeypatch.setenv("WAVEDECK_MODEL_KEY", "a-key")
    with model_server(answer=answer) as server:
        rows_before(home, f"openai:test@{server.openai_url}", recorded_rows)
        done = shell("ablate", *options_for(server), "--json")
        assert done.code == ExitCode.DONE, done.err
    report = json.loads(done.out)
    assert [row["correct"] for row in report["rows"]] == [1, 1, 1, 1, 1, 1, 0]
    sessions = [row["session"] for row in report["rows"]]
    recorded = shell("record", *sessions, "whole")
    assert recorded.code == ExitCode.DONE, recorded.err
    rows_before(home, "recorded:whole", recorded_rows)
    again = shell("ablate", "--model", "recorded:whole", "--json")
    assert again.code == ExitCode.DONE, again.err
    replayed = json.loads(again.out)
    assert (replayed["tasks"], replayed["instances"], replayed["iterations"]) == (report["tasks"], 1, 2)
    for before, after in zip(report["rows"], replayed["rows"], strict=True):
        same = before.keys() - {"session"}
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert report["contributions"] == replayed["contributions"]
    repeated = shell("ablate", "--model", "recorded:whole", "--json")
    assert repeated.out == again.out, "no row runs twice"


@pytest.mark.soak
@pytest.mark.judge
@pytest.mark.usefixtures("scripted_judge")
def test_failed_row_is_reported_and_interrupted_row_continues(
    shell: Shell, home: Home, engines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last row gets a model that refuses its key, then a silent model and an interrupt, then a model that answers."""
    monkeypatch.setenv("WAVEDECK_MODEL_KEY", "a-key")
    model = [refuses(401, message="no such key")]
    with model_server(answer=lambda seen: model[0] if model else answer(seen)) as server:
        rows_before(home, f"openai:test@{server.openai_url}", 6)
        failed = shell("ablate", *options_for(server), "--json")
        assert failed.code == ExitCode.FAILED
        last = json.loads(failed.out)["rows"][-1]
        assert (last["state"], last["instances"], last["execution_accuracy"]) == ("failed", 0, None)
        assert json.loads(failed.out)["contributions"][-1]["difference"] is None
        assert "no such key" in failed.err
        assert "the same command runs the others" in failed.err

        model[0] = hangs("", after=-1)
        before = len(server.requests)
        waiting = start("ablate", *options_for(server), "--json")
        wait_until(lambda: len(server.requests) > before, "a request")
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=LIMIT_S)
        assert waiting.returncode == ExitCode.INTERRUPTED, err
        row = json.loads(out)["rows"][-1]
        assert (row["session"], row["state"]) == (last["session"], "stopped")

        model.clear()
        done = shell("ablate", *options_for(server), "--json")
        assert done.code == ExitCode.DONE, done.err
        row = json.loads(done.out)["rows"][-1]
        assert (row["session"], row["state"], row["instances"]) == (last["session"], "finished", 1)
