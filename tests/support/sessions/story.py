"""Events of an invented session as an engine records them, and git helpers for the tests of `sessions`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from harness import ErrorReport, Evaluation, KernelResources, Latency, Outcome, Verdict
from sessions import EventClock, Home, Recorder
from sessions import events as ev
from sessions.events import AnyEvent
from sessions.journal.journal import parse
from sessions.settings import RunSettings
from sessions.store.store import NewCommit, Store
from tests.support.judge.evaluations import judged, traffic

SESSION = "20250102-030405-geak-0a1b"
KERNEL = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n"


def evaluation(
    verdict: Verdict, *, speedup: float | None = None, task: str = "starter/softmax"
) -> Evaluation:
    """Return an evaluation whose stages end where its verdict says."""
    passed = {Verdict.CORRECT: 5, Verdict.WRONG: 3, Verdict.COMPILE_ERROR: 2, Verdict.CALL_ERROR: 1}.get(
        verdict, 0
    )
    error = ErrorReport("mismatch", "output 0 is wrong at (0, 3)", trace='File "kernel.py", line 5', line=5)
    return judged(
        verdict,
        passed,
        task=task,
        error=None if verdict is Verdict.CORRECT else error,
        speedup=speedup,
        latency=() if speedup is None else (timed(speedup),),
        resources={"gfx942": (KernelResources("k", "small", {}, None, "gfx942", "ab", (4, 1, 1), vgprs=32),)},
        traffic=(
            traffic(
                "small",
                640,
                320,
                minimal=96,
                sizes={"n": 8},
                unique_read_bytes=64,
                unique_write_bytes=32,
                flops=48,
                programs=4,
            ),
        ),
    )


def timed(speedup: float) -> Latency:
    """Return the timing of one case with this speedup."""
    interval = (0.97 * speedup, 1.03 * speedup)
    return Latency("0", "small", speedup, 1.0, speedup, interval, "tape", Outcome.NOT_RESOLVED)


def started(session: str = SESSION, **changes: object) -> ev.SessionStarted:
    """Return the first event of a session; changes are fields of the event or of its settings."""
    settings = RunSettings(
        method="geak",
        model="recorded:starter",
        tasks=("starter/softmax",),
        instances=2,
        iterations=3,
        seed=1,
        devices=("cpu",),
        targets=("gfx942",),
        review="auto",
    )
    event = ev.SessionStarted(
        session=session,
        settings=settings,
        versions={"triton": "3.7.1"},
        templates={"generator.j2": "0" * 64},
    )
    return changed(event, **changes)


def changed(event: ev.Event, **changes: object) -> ev.SessionStarted:
    """Return a first event with other values of its own fields or of its settings."""
    own = {name: value for name, value in changes.items() if name in event.__struct_fields__}
    changed_settings = {name: value for name, value in changes.items() if name not in own}
    return msgspec.structs.replace(
        event, settings=msgspec.structs.replace(event.settings, **changed_settings), **own
    )


def call(
    attempt: str, role: ev.Role, words: str, *, n: int = 1, cost_usd: float | None = None
) -> Iterator[ev.Event]:
    """Yield one call with a retry and a streamed reply."""
    name = f"{attempt}/{role}/{n}"
    messages = (ev.Message("system", "You write kernels."), ev.Message("user", f"Please: {words[:10]}"))
    yield ev.CallStarted(call=name, attempt=attempt, role=role, model="m", messages=messages)
    yield ev.ReplyPiece(call=name, kind="text", text="half a rep")
    yield ev.CallRetried(call=name, reason="cut", message="the stream ended", wait_s=1.0, retry=1)
    yield ev.ReplyPiece(call=name, kind="reasoning", text="let me ")
    yield ev.ReplyPiece(call=name, kind="reasoning", text="think")
    for start in range(0, len(words), 7):
        yield ev.ReplyPiece(call=name, kind="text", text=words[start : start + 7])
    yield ev.CallFinished(
        call=name,
        text=words,
        reasoning="let me think",
        stop_reason="end",
        usage=ev.Usage(100, 20, 50),
        cost_usd=cost_usd,
        seconds=2.5,
        temperature=1.0,
    )


def attempt(
    name: str,
    verdict: Verdict,
    *,
    origin: ev.Origin = ev.Origin.FRESH,
    base: str | None = None,
    speedup: float | None = None,
) -> Iterator[ev.Event]:
    """Yield one whole attempt up to its verdict, and the reflection after a failure."""
    yield ev.AttemptStarted(attempt=name, origin=origin, base=base)
    source = f"{KERNEL}# {name}\n"
    role = ev.Role.OPTIMIZER if origin is ev.Origin.OPTIMIZE else ev.Role.GENERATOR
    yield from call(name, role, f"```python\n{source}```")
    yield ev.CandidateProposed(attempt=name, source=source, strategy="tile it")
    judged = evaluation(verdict, speedup=speedup)
    for stage in judged.stages:
        if stage.ok is not None:
            yield ev.StageStarted(attempt=name, stage=stage.name, device="cpu")
            yield ev.StageFinished(attempt=name, stage=stage)
    yield ev.AttemptJudged(attempt=name, evaluation=judged)
    if verdict is not Verdict.CORRECT:
        yield from call(name, ev.Role.REFLECTOR, "The mask is wrong.", cost_usd=0.25)


def exam(name: str, verdict: Verdict) -> Iterator[ev.Event]:
    """Yield the exam of a winner."""
    result = msgspec.structs.replace(evaluation(verdict), exam=True)
    for stage in result.stages:
        if stage.ok is not None:
            yield ev.StageStarted(attempt=name, stage=stage.name, device="cpu", exam=True)
            yield ev.StageFinished(attempt=name, stage=stage, exam=True)
    yield ev.WinnerExamined(attempt=name, evaluation=result)


def instance(number: int) -> Iterator[ev.Event]:
    """Yield three attempts on softmax: the first fails, the second repairs it, the third is faster."""
    key = f"softmax#{number}"
    yield ev.InstanceStarted(task="starter/softmax", instance=number)
    yield from attempt(f"{key}/1", Verdict.WRONG)
    yield from attempt(f"{key}/2", Verdict.CORRECT, origin=ev.Origin.REPAIR, base=f"{key}/1", speedup=1.2)
    yield from attempt(f"{key}/3", Verdict.CORRECT, origin=ev.Origin.OPTIMIZE, base=f"{key}/2", speedup=1.42)
    yield from exam(f"{key}/3", Verdict.CORRECT)
    yield ev.InstanceFinished(task="starter/softmax", instance=number, reason="iterations", best=f"{key}/3")


def after_start() -> list[ev.Event]:
    """Return all events of a session after its first event."""
    device = ev.DeviceSampled(device="cpu", description="a CPU", busy_with=("softmax#1/1",), utilisation=0.5)
    return [
        ev.EngineStarted(host="node", pid=1),
        device,
        ev.DeviceAwaited(
            device="0", holders=("a process of ada (pid 7 on node) times on it since 12:00:00",)
        ),
        ev.NodePaused(why="GPU 0: no answer", next_probe_s=5.0),
        ev.NodeResumed(seconds=5.0),
        ev.DeviceQuarantined(device="1", why="no answer"),
        *instance(1),
        ev.Notice(level="info", message="half-way"),
        *instance(2),
        ev.SessionFinished(solved=("starter/softmax",)),
    ]


def numbered(events: list[ev.Event]) -> list[ev.Event]:
    """Return the events with numbers and times, as a journal sets them."""
    return [
        msgspec.structs.replace(event, seq=index, wall=1.7e9 + index, mono=float(index))
        for index, event in enumerate(events, start=1)
    ]


def whole() -> list[ev.Event]:
    """Return the numbered events of a whole session."""
    return numbered([started(), *after_start()])


class Ticking:
    """Clock that advances one second at each call."""

    def __init__(self, begin: float = 1.7e9) -> None:
        self.now = begin

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def begin(home: Home) -> Recorder:
    """Begin the session, with clocks that tick at each event."""
    return Recorder.begin(home, started(), clock=EventClock(Ticking(), Ticking(0.0)))


def ends_an_attempt(event: ev.Event) -> str | None:
    """Return the attempt that is complete after this event, or `None`."""
    match event:
        case ev.AttemptJudged() if event.evaluation.verdict is Verdict.CORRECT:
            return event.attempt
        case ev.CallFinished() if "/reflector/" in event.call:
            return event.call.rsplit("/", 2)[0]
    return None


async def play(recorder: Recorder, events: Iterable[ev.Event]) -> None:
    """Record the events as an engine does: durable events off the loop, and a commit when an attempt ends."""
    for event in events:
        if isinstance(event, ev.DurableEvent):
            await recorder.record_durable(event)
        else:
            recorder.record(event)
        attempt = ends_an_attempt(event)
        if attempt is not None:
            await recorder.commit_attempt(attempt)


def git(repository: Path, *arguments: str) -> str:
    """Run git and return its output."""
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit_all(folder: Path) -> Path:
    """Make a repository of a folder, with its files in a first commit of Ada; return the folder."""
    git(folder, "init", "-q", "-b", "main", ".")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def loosen(store: Path) -> None:
    """Make each object of a pack a file of its own, so that a test can remove one."""
    for pack in list((store / "objects/pack").glob("*.pack")):
        data = pack.read_bytes()
        pack.unlink()
        pack.with_suffix(".idx").unlink()
        subprocess.run(["git", "-C", str(store), "unpack-objects", "-q"], input=data, check=True)


def lose(home: Home, name: str) -> Path:
    """Remove the loose object that git knows by this name; return its path."""
    sha = git(home.store, "rev-parse", name).strip()
    path = home.store / "objects" / sha[:2] / sha[2:]
    path.unlink()
    return path


def commit(store: Store, branch: str, files: Mapping[str, bytes], *parents: str, wall: float = 1.0) -> str:
    """Commit files to a branch; returns the id of the commit."""
    return store.commit_all([NewCommit(branch, files, parents, "m", wall)])[0]


def stored_events(store: Store, session: str) -> list[AnyEvent]:
    """Returns the events of a session's journal as the store has them."""
    return parse(store.session_lines(session)).events


def assert_sound(repository: Path) -> None:
    """Assert that `git fsck --strict` finds no problem; an empty store is accepted."""
    done = subprocess.run(
        ["git", "-C", str(repository), "fsck", "--strict", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [
        line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("notice: ")
    ]
    assert done.returncode == 0, complaints
    assert complaints == []
