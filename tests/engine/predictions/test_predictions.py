"""Protects how predictions that were made elsewhere are read, matched, kept and written; no judge runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from engine.errors import UsageProblem
from engine.methods import ReadyCandidate
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from engine.predictions.matching import ReadPredictions, Sample, match, read_predictions
from engine.predictions.original import judge_originals
from engine.predictions.original_verdicts import ORIGINAL
from engine.predictions.plans import earlier_session, plan_predictions
from engine.predictions.results import WAVEDECK, original_results
from harness import Verdict, WorkerDied
from harness.node.discovery import CPU
from harness.recording.original import OriginalOutcome, OriginalVerdict
from sessions.catalog import list_sessions
from sessions.events import AttemptJudged
from sessions.home import Home, home_from
from sessions.settings import MethodOptions
from sessions.state.folding import fold
from sessions.store.recorder import Recorder
from suites import add_suite, load_public_suite
from suites.public.task import PublicTask, SuiteKind
from tests.suites.public import clones
from tests.support.engine.engines import (
    ScriptedJudge,
    candidate,
    cut,
    plan,
    play,
    resume_to_end,
    scripted_model,
)

KEY = partial(Sample.key, protocol=WAVEDECK, seed=0)


@pytest.fixture
def home(isolated_home: Path) -> Home:
    home = home_from(os.environ)
    home.ensure()
    return home


def tasks_of(
    home: Home, make: Callable[[Path], Path], folder: Path, kind: SuiteKind
) -> tuple[PublicTask, ...]:
    add_suite("mine", make(folder), home.suites, kind=kind)
    return load_public_suite("mine", registry=home.suites).tasks


@pytest.fixture
def tasks(home: Home, tmp_path: Path) -> tuple[PublicTask, ...]:
    return tasks_of(home, clones.geak_eval, tmp_path / "clone", SuiteKind.TRITONBENCH_REVISED)


def read(folder: Path, *lines: object) -> ReadPredictions:
    file = folder / "predictions.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return read_predictions(file)


def test_lines_that_cannot_be_read_do_not_stop_the_others(tmp_path: Path) -> None:
    reading = read(
        tmp_path, {"predict": "x = 1", "file": "a.py"}, '{"predict": ', {"file": "b.py"}, [1],
        {"predict": None},
    )  # fmt: skip
    assert [prediction.place for prediction in reading.predictions] == ["line 1", "line 5"]
    assert [problem.partition(":")[0] for problem in reading.problems] == [
        "line 2 is not JSON",
        "line 3 has no `predict`",
        "line 4 is not a JSON object",
    ]


def test_an_array_and_a_folder_of_kernelbench_are_read_too(tmp_path: Path) -> None:
    array = tmp_path / "predictions.json"
    array.write_text(json.dumps([{"predict": "x<|EOT|>", "file": "a"}, 3]))
    reading = read_predictions(array)
    assert ([prediction.text for prediction in reading.predictions], len(reading.problems)) == (["x"], 1)
    kernels = clones.write(
        tmp_path / "run",
        {f"level_1_problem_2_sample_{number}_kernel.py": f"x = {number}" for number in (10, 9)},
    )
    assert [(item.file, item.text) for item in read_predictions(kernels).predictions] == [
        ("level1_2", "x = 9"),
        ("level1_2", "x = 10"),
    ]
    with pytest.raises(UsageProblem, match="there is no file"):
        read_predictions(tmp_path / "nothing.jsonl")


def test_a_task_is_found_by_file_and_by_the_text_of_its_reference(
    tasks: tuple[PublicTask, ...], tmp_path: Path
) -> None:
    reply = f"I wrote it.\n```python\n{clones.TRITON}```\n"
    reading = read(
        tmp_path,
        {"predict": clones.TRITON, "file": "scale.py"},
        {"predict": reply, "file": "data/Scale"},
        {"predict": "sorry", "label": "# the answer\n" + clones.TRITON + "<|im_end|>"},
        {"predict": "no code ```", "label": clones.TRITON[:400]},
        {"predict": "x", "file": "other.py"},
        {"predict": "x", "label": "def f():\n    pass\n"},
        {"predict": "x"},
    )
    samples, problems = match(reading.predictions, tasks)
    assert [(sample.name, sample.unusable) for sample in samples] == [
        ("scale", ""),
        ("scale sample 2", ""),
        ("scale sample 3", ""),
        ("scale sample 4", "no_code_block"),
    ]
    assert samples[0].source == samples[1].source == clones.TRITON
    assert KEY(samples[0]) == KEY(samples[1]) != KEY(samples[2])
    assert problems == [
        "line 5: the suite has no task 'other.py'",
        "line 6: `label` is the text of no reference of the suite; add `file`",
        "line 7 names no task: it needs `file`, or `label` with the reference",
    ]


def test_a_task_of_tritonbench_t_is_found_by_the_description_in_the_prompt(
    home: Home, tmp_path: Path
) -> None:
    tasks = tasks_of(home, clones.tritonbench, tmp_path / "clone", SuiteKind.TRITONBENCH_T)
    prompt = (
        "Write it.\nFunctional Description: Adds x to itself.\nReally. Wrapper Entry Information: twice(x)"
    )
    reading = read(tmp_path, {"instruction": prompt, "predict": "x = 1", "label": ""})
    samples, problems = match(reading.predictions, tasks)
    assert ([sample.public.file for sample in samples], problems) == (["twice.py"], [])


async def test_an_interrupted_session_of_predictions_goes_on(home: Home, tmp_path: Path) -> None:
    candidates = {
        f"vector_add#{number}": (ReadyCandidate(source),)
        for number, source in enumerate((candidate("correct", "1"), candidate("wrong", "2"), ""), 1)
    }
    predictions = plan(
        method="predictions", instances=3, candidates=candidates, options=MethodOptions(predictions="1f")
    )
    judge = ScriptedJudge()
    whole = await play(home, scripted_model(), session_plan=predictions, judge=judge)
    first = next(place for place, event in enumerate(whole, 1) if isinstance(event, AttemptJudged))
    later = Home(tmp_path / "later")
    cut(home, later, predictions.session, first)
    again = ScriptedJudge()
    events = await resume_to_end(later, predictions, scripted_model(), again, store=True)
    assert {attempt.attempt: attempt.verdict for attempt in fold(events).attempts()} == {
        "vector_add#1/1": Verdict.CORRECT,
        "vector_add#2/1": Verdict.WRONG,
        "vector_add#3/1": Verdict.NO_CODE,
    }
    assert len(judge.evaluated) == 3
    assert len(again.evaluated) == 2, "a verdict is not asked for twice"
    assert not judge.examined, "predictions are not examined"
    (info,) = list_sessions(later)
    assert (info.name, info.state) == (predictions.session, "finished")


def test_the_session_of_the_same_predictions_is_found_again(
    home: Home, tasks: tuple[PublicTask, ...], tmp_path: Path
) -> None:
    reading = read(tmp_path, *({"predict": text, "file": "scale"} for text in ("x = 1", "x = 2", "x = 1")))
    samples, _ = match(reading.predictions, tasks)

    def planned(count: int, seed: int = 0) -> SessionPlan:
        return plan_predictions(
            samples[:count], file="predictions.jsonl", seed=seed, devices=[CPU], targets=["gfx942"]
        )

    kept = planned(3)
    assert list(kept.candidates) == ["mine/scale#1", "mine/scale#2", "mine/scale#3"]
    assert kept.candidates["mine/scale#2"][0].strategy == "line 2 of predictions.jsonl"
    Recorder.begin(home, session_started(kept)).close()
    earlier = earlier_session(home, planned(3))
    assert earlier is not None
    assert earlier.name == kept.session
    assert earlier_session(home, planned(2)) is earlier_session(home, planned(3, seed=1)) is None


async def test_results_of_the_original_protocol_are_kept_at_once(
    home: Home, tasks: tuple[PublicTask, ...], tmp_path: Path
) -> None:
    reading = read(tmp_path, *({"predict": text, "file": "scale"} for text in ("x = 1", "x = 2", "x = 1")))
    samples, _ = match(reading.predictions, tasks)
    lines: list[str] = []

    async def run(*verdicts: OriginalVerdict | None, again: bool = False) -> list[Sample]:
        waiting = iter(verdicts)

        async def judge(sample: Sample) -> OriginalVerdict:
            verdict = next(waiting)
            if verdict is None:
                raise WorkerDied("the judge is gone")
            return verdict

        results = original_results(home.suites, CPU)
        return await judge_originals(
            samples, results, judge, device="cpu", slots=1, seed=0, again=again, say=lines.append
        )

    passes = OriginalVerdict(OriginalOutcome.PASSES)
    assert [sample.number for sample in await run(passes, None)] == [2]
    kept = original_results(home.suites, CPU)
    with kept.path.open("ab") as file:
        file.write(b'{"key": "cut o')
    assert await run(OriginalVerdict(OriginalOutcome.FAILS, "it ends early")) == []
    assert [line.partition(" (")[0] for line in lines] == [
        "1 of 2: scale: passes",
        "2 of 2: scale sample 2: lost: the judge is gone",
        "1 of 1: scale sample 2: fails: it ends early",
    ]
    assert await run() == [], "a line that was cut off costs no other line"
    await run(passes, passes, again=True)
    newest = [original_results(home.suites, CPU).find(sample.key(ORIGINAL, 0)) for sample in samples]
    assert [result.verdict for result in newest if result] == ["passes"] * 3
