"""Writes sessions into a real store through the real recorder, for tests of commands that read them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path

import msgspec

from harness import ErrorReport, Evaluation, Latency, Verdict
from sessions import Home
from sessions import events as ev
from sessions.journal.journal import EventClock
from sessions.names import short_task
from sessions.recording import write_recording
from sessions.settings import MethodOptions
from sessions.store.recorder import Recorder
from tests.support.command_line import ROOT
from tests.support.judge.evaluations import judged, one_case
from tests.support.sessions import story

FIRST = "20260102-030405-geak-aaaa"
SECOND = "20260102-040506-geak-bbbb"

SLOW = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n"
FAST = SLOW + "\n\ndef softmax(x):\n    return x\n"


def ticking() -> EventClock:
    """Return a clock that advances one second at each call."""
    ticks: Iterator[int] = count(1_767_323_045)
    return EventClock(wall=lambda: float(next(ticks)), mono=lambda: 0.0)


def evaluation(verdict: Verdict, *, speedup: float | None = None, message: str = "") -> Evaluation:
    """Return an evaluation of softmax with this verdict."""
    error = ErrorReport(kind="mismatch", message=message, trace="kernel.py:4 kernel", line=4)
    return judged(
        verdict,
        {Verdict.CORRECT: 5, Verdict.CALL_ERROR: 1}.get(verdict, 3),
        error=None if verdict is Verdict.CORRECT else error,
        speedup=speedup,
        latency=one_case(speedup),
    )


def begin(
    home: Home,
    session: str = FIRST,
    *,
    model: str = "recorded:starter",
    options: MethodOptions | None = None,
    series: str = "",
) -> Recorder:
    """Begin a session on softmax with one started instance."""
    started = story.started(
        session, model=model, instances=1, iterations=2, seed=7, versions={}, templates={},
        options=options or MethodOptions(), series=series,
    )  # fmt: skip
    recorder = Recorder.begin(home, started, clock=ticking())
    recorder.record(ev.EngineStarted(host="node", pid=1))
    recorder.record(ev.InstanceStarted(task="starter/softmax", instance=1))
    return recorder


def attempt(
    recorder: Recorder,
    number: int,
    verdict: Verdict,
    *,
    speedup: float | None = None,
    message: str = "",
    source: str = SLOW,
    strategy: str = "",
) -> None:
    """Record one whole attempt: call, candidate, verdict, commit."""
    name = f"softmax#1/{number}"
    base = f"softmax#1/{number - 1}" if number > 1 else None
    origin = ev.Origin.REPAIR if base else ev.Origin.FRESH
    recorder.record(ev.AttemptStarted(attempt=name, origin=origin, base=base))
    call(
        recorder, name, ev.Role.GENERATOR, f"```python\n{source}```", words="write softmax",
        usage=ev.Usage(input_tokens=1000, output_tokens=200),
    )  # fmt: skip
    recorder.record(ev.CandidateProposed(attempt=name, source=source, strategy=strategy))
    recorder.record(
        ev.AttemptJudged(attempt=name, evaluation=evaluation(verdict, speedup=speedup, message=message))
    )
    recorder.now(recorder.commit_attempt(name))


def examine(recorder: Recorder, number: int, verdict: Verdict) -> None:
    """Record the exam of an attempt."""
    result = evaluation(verdict, message="an exam case is wrong")
    recorder.record(
        ev.WinnerExamined(
            attempt=f"softmax#1/{number}", evaluation=msgspec.structs.replace(result, exam=True)
        )
    )


def finish(recorder: Recorder, best: str = "softmax#1/2") -> None:
    """Finish the session and move it to the store."""
    recorder.record(ev.InstanceFinished(task="starter/softmax", instance=1, reason="iterations", best=best))
    recorder.record(ev.SessionFinished(solved=("starter/softmax",)))
    recorder.now(recorder.finish())


def finished(home: Home, session: str = FIRST) -> str:
    """Store a finished session with a wrong attempt and its repair; returns the name.

    An empty home gets a copy of one that was made before: git's commands for it take longer than most tests.
    """
    if home.root.exists():
        _finish(home, session)
    else:
        shutil.copytree(_home_with(session).name, home.root)
    return session


@cache
def _home_with(session: str) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="wavedeck-finished-")
    _finish(Home(Path(folder.name)), session)
    return folder


def _finish(home: Home, session: str) -> None:
    recorder = begin(home, session)
    attempt(recorder, 1, Verdict.WRONG, message="output out differs in 12 % of its elements")
    attempt(recorder, 2, Verdict.CORRECT, source=FAST, strategy="store every row")
    finish(recorder)


def stopped(home: Home, session: str = FIRST, *, verdict: Verdict = Verdict.WRONG) -> str:
    """Write a session that was stopped after one attempt; returns the name."""
    recorder = begin(home, session)
    attempt(recorder, 1, verdict, message="output out differs in 12 % of its elements")
    recorder.record(ev.EngineStopped(reason="asked to"))
    recorder.now(recorder.flush())
    recorder.close()
    return session


def call(
    recorder: Recorder,
    attempt_name: str,
    role: ev.Role,
    text: str,
    *,
    words: str = "go on",
    usage: ev.Usage = ev.Usage(input_tokens=100, output_tokens=50),  # noqa: B008  # frozen
) -> None:
    """Record a finished call of an attempt, with these words in its prompt."""
    name = f"{attempt_name}/{role}/1"
    messages = (ev.Message("user", words),)
    model = recorder.state.started.model
    recorder.record(
        ev.CallStarted(call=name, attempt=attempt_name, role=role, model=model, messages=messages)
    )
    recorder.record(ev.CallFinished(call=name, text=text, stop_reason="end", usage=usage, seconds=1.0))


def vector_add_recording(home: Home, name: str, *, instances: int = 1) -> Path:
    """Write a recording with equal chains on vector_add: a wrong kernel, a reflection, and the baseline as repair."""
    good = (ROOT / "suites/starter/vector_add/baseline.py").read_text()
    wrong = good.replace("x + y, mask", "x - y, mask")
    assert wrong != good
    tasks = ("starter/vector_add",)
    started = story.started(
        model="openai:m", tasks=tasks, instances=instances, iterations=2, versions={}, templates={}
    )
    recorder = Recorder.begin(home, started, clock=ticking())
    for instance in range(1, instances + 1):
        recorder.record(ev.InstanceStarted(task="starter/vector_add", instance=instance))
        for number, source, origin in ((1, wrong, ev.Origin.FRESH), (2, good, ev.Origin.REPAIR)):
            attempt_name = f"vector_add#{instance}/{number}"
            recorder.record(ev.AttemptStarted(attempt=attempt_name, origin=origin))
            call(recorder, attempt_name, ev.Role.GENERATOR, f"```python\n{source}```\n")
            recorder.record(ev.CandidateProposed(attempt=attempt_name, source=source))
            verdict = Verdict.WRONG if number == 1 else Verdict.CORRECT
            recorder.record(ev.AttemptJudged(attempt=attempt_name, evaluation=evaluation(verdict)))
            if verdict is Verdict.WRONG:
                call(recorder, attempt_name, ev.Role.REFLECTOR, "It subtracts; it should add.")
    recorder.record(ev.SessionFinished())
    folder = write_recording([recorder.state], name, home.recordings)
    recorder.close()
    for file in sorted(recorder.files.folder.iterdir()):
        file.unlink()
    recorder.files.folder.rmdir()
    return folder


def solved(
    home: Home,
    sources: Mapping[str, str],
    session: str = FIRST,
    *,
    latency: tuple[Latency, ...] = (),
    **fields: object,
) -> str:
    """Store a finished session with one correct attempt for each task; returns the name.

    `sources` are kernels by full task name; `fields` are more fields of each evaluation.
    """
    started = story.started(
        session, model="openai:m", tasks=tuple(sources), instances=1, iterations=1, seed=7, versions={}
    )
    recorder = Recorder.begin(home, started, clock=ticking())
    for task, source in sources.items():
        name = f"{short_task(task)}#1/1"
        recorder.record(ev.InstanceStarted(task=task, instance=1))
        recorder.record(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH))
        call(recorder, name, ev.Role.GENERATOR, f"```python\n{source}```\n")
        recorder.record(ev.CandidateProposed(attempt=name, source=source, strategy="one pass over each row"))
        correct = judged(Verdict.CORRECT, 6 if latency else 5, task=task, latency=latency, **fields)
        recorder.record(ev.AttemptJudged(attempt=name, evaluation=correct))
        recorder.now(recorder.commit_attempt(name))
        recorder.record(ev.InstanceFinished(task=task, instance=1, reason="iterations", best=name))
    recorder.record(ev.SessionFinished(solved=tuple(sources)))
    recorder.now(recorder.finish())
    return session
