"""What the clock's times are made into, and how the engine serves a clock: over constructed times, a scripted clock, real processes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness import evaluating, limits
from harness.baselines import Against, Baseline
from harness.device import Device
from harness.effort import WHOLE
from harness.errors import WorkerDied
from harness.evaluating import Evaluating
from harness.evaluation import ErrorReport, Verdict
from harness.frames import AsyncChannel
from harness.kernel_cache import KernelCache
from harness.latency import DeviceState, Latency, Outcome, Window
from harness.limits import TimeLimits
from harness.performance import Performance
from harness.products import find_product
from harness.servers import Child, ForkServer
from harness.sheet import Sheet
from harness.spares import Spares
from harness.targets import target
from harness.telemetry import Point, Watched
from harness.timed import CONFIRMED_MS, Timing, concluded, confirmed, mean_speedups, tape_facts, undisturbed
from harness.worker.judge.seeds import derive
from harness.worker.serving.messages import ENCODER, Alive, Ended
from harness.worker.timing.messages import (
    BASELINE,
    CANDIDATE,
    JUDGE_REQUESTS,
    RIVAL,
    TAPE,
    Block,
    Floor,
    Leased,
    LeaseWanted,
    Measure,
    Measured,
    NeedTimers,
    ProcessTimes,
    Taped,
    Timer,
)
from suites import load_task

TASK = load_task("vector_add")
GPU = Device(name="0", kind="cuda", target="sm_90")
MEASURE = Measure(
    task=TASK,
    sources={BASELINE: "b", CANDIDATE: "c"},
    seed=1,
    target="sm_90",
    limits=TimeLimits(),
    cold=True,
    against="triton",
    flush_bytes=1 << 20,
    budget_s=1.0,
)
QUIET = Window(source="", seconds=0.0)


def process(
    side: str, pair: int, ms: float, *, case: str = "fp32", began_s: float = 0.0, **changes: Any
) -> ProcessTimes:
    """Ten samples of about `ms` in two blocks."""
    samples = tuple(ms * (1 + 0.0001 * number) for number in range(-2, 3))
    blocks = tuple(Block(began_s + at, began_s + at + 0.5, samples) for at in (0.0, 1.0))
    usual = ProcessTimes(
        side=side,
        pair=pair,
        case=case,
        blocks=blocks,
        wall_ms=None,
        plain_ms=None,
        graph_ms=None,
        why_no_graph="",
        peak_bytes=100 * (pair + 1),
        configs={},
    )
    return msgspec.structs.replace(usual, **changes)


def times(case: str = "fp32", *, pairs: int = 3, **by_side: float) -> tuple[ProcessTimes, ...]:
    return tuple(process(side, pair, ms, case=case) for pair in range(pairs) for side, ms in by_side.items())


def told(
    *found: ProcessTimes,
    product: str = "",
    left_out: Mapping[tuple[str, str], int] | None = None,
    **changes: Any,
) -> Timing:
    measured = msgspec.structs.replace(Measured(times=found, floor=None), **changes)
    known = find_product(product) if product else None
    sides = {one.side for one in found if one.side != TAPE} | {BASELINE, CANDIDATE}
    measure = msgspec.structs.replace(MEASURE, sources=dict.fromkeys(sorted(sides), "x"))
    return concluded(GPU, known, measure, measured, QUIET, Counter(left_out or {}))


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        (0.5, Outcome.FASTER),
        (2.0, Outcome.SLOWER),
        (1.0, Outcome.NOT_RESOLVED),
        (1.004, Outcome.NOT_RESOLVED),
    ],
)
def test_a_case_has_its_ratio_and_what_may_be_said_of_it(candidate: float, outcome: Outcome) -> None:
    (one,) = told(*times(baseline=1.0, candidate=candidate)).latency
    assert one.outcome is outcome
    assert one.speedup == pytest.approx(1 / candidate)
    assert one.ci is not None
    assert one.ci[0] <= 1 / candidate <= one.ci[1]
    assert (one.baseline_ms, one.candidate_ms, one.pairs) == (1.0, candidate, 3)
    assert one.candidate is not None
    assert (one.candidate.samples, one.candidate.processes, one.candidate.peak_bytes) == (30, 3, 300)
    assert (one.against, one.cache) == ("triton", "cold")


@pytest.mark.parametrize(("short", "other"), [("baseline", "candidate"), ("candidate", "baseline")])
def test_below_five_floors_of_either_side_there_is_no_ratio(short: str, other: str) -> None:
    floor = Floor(empty_ms=0.002, copies=())

    def of(ms: float) -> Latency:
        found = [process(side, pair, by) for pair in range(3) for side, by in ((short, ms), (other, 0.02))]
        return told(*found, floor=floor).latency[0]

    below = of(0.0099)
    assert (below.outcome, below.speedup, below.ci) == (Outcome.TOO_SHORT, None, None)
    assert below.floor_ms == 0.002
    assert of(0.0101).outcome is not Outcome.TOO_SHORT


def test_a_rival_is_told_beside_with_a_ratio_of_its_own() -> None:
    (one,) = told(*times(baseline=1.0, candidate=0.5, rival=0.6)).latency
    assert one.rival_ms == 0.6
    assert one.rival_speedup == pytest.approx(1.2)
    assert one.rival_ci is not None
    assert one.rival_ci[0] <= 1.2 <= one.rival_ci[1]


def test_a_rival_that_lacks_a_pair_has_a_time_but_no_ratio() -> None:
    found = [
        one for one in times(baseline=1.0, candidate=0.5, rival=0.6) if (one.side, one.pair) != (RIVAL, 1)
    ]
    (one,) = told(*found).latency
    assert (one.rival_ms, one.rival_speedup, one.rival_ci) == (0.6, None, None)


def test_a_rival_of_a_case_that_is_too_short_has_no_ratio() -> None:
    (one,) = told(
        *times(baseline=1.0, candidate=0.5, rival=0.6), floor=Floor(empty_ms=0.2, copies=())
    ).latency
    assert one.rival_speedup is None


def test_only_pairs_that_both_sides_finished_count() -> None:
    found = [one for one in times(baseline=1.0, candidate=0.5) if (one.side, one.pair) != (CANDIDATE, 0)]
    found = [msgspec.structs.replace(one) for one in reversed(found)]  # in no order
    (one,) = told(*found).latency
    assert one.pairs == 2
    assert one.baseline is not None
    assert one.baseline.processes == 2


def test_a_case_with_fewer_than_two_pairs_is_not_told_and_the_others_are() -> None:
    ragged = [one for one in times("fp32-ragged", baseline=1.0, candidate=0.5) if one.pair == 0]
    timing = told(*times(baseline=1.0, candidate=0.5), *ragged)
    assert [one.case for one in timing.latency] == ["fp32"]
    assert timing.detail.startswith(f"1 of {len(TASK.open_cases)} cases timed against triton, cold caches")


@pytest.mark.parametrize(
    ("event", "wall", "tape", "word"),
    [
        (1.0, None, None, "bound"),
        (1.0, 1.05, None, "wall"),
        (1.0, 0.9, None, "wall"),
        (1.0, 1.2, None, "bound"),
        (0.01, 0.01 + 0.9 * CONFIRMED_MS, None, "wall"),
        (0.01, 0.01 + 1.1 * CONFIRMED_MS, None, "bound"),
        (1.0, 1.2, 1.05, "graph"),
        (1.0, 1.0, 1.05, "graph"),
        (1.0, 1.05, 1.2, "wall"),
        (1.0, 5.0, 5.0, "bound"),  # a guest that says a fifth of the truth
    ],
)
def test_a_candidates_word_is_confirmed_by_times_out_of_its_reach(
    event: float, wall: float | None, tape: float | None, word: str
) -> None:
    assert confirmed(event, wall, tape) == word


def test_the_tape_and_the_watch_of_the_same_case_confirm_it() -> None:
    both = times(baseline=1.0, candidate=0.5)
    watched = [msgspec.structs.replace(one, wall_ms=0.51) for one in both]
    assert told(*both).latency[0].confirmed == "bound"
    assert told(*watched).latency[0].confirmed == "wall"
    assert told(*both, process(TAPE, 3, 0.5)).latency[0].confirmed == "graph"
    assert told(*both, process(TAPE, 3, 2.0)).latency[0].confirmed == "bound"
    assert told(*both, process(TAPE, 3, 0.5, case="fp32-ragged")).latency[0].confirmed == "bound"


def test_a_baseline_that_fails_leaves_the_candidate_correct_and_says_why() -> None:
    timing = told(problem="case fp32: the baseline could not be timed: boom")
    assert (timing.verdict, timing.error, timing.ok) == (Verdict.CORRECT, None, None)
    assert "the baseline could not be timed: boom" in timing.detail


def test_what_was_timed_before_a_problem_is_told_with_it() -> None:
    timing = told(*times(baseline=1.0, candidate=0.5), problem="full")
    assert timing.ok is True
    assert timing.notes == (f"timing was not whole: 1 of {len(TASK.open_cases)} cases: full",)


def test_a_problem_after_every_case_was_timed_takes_nothing_from_them() -> None:
    every = [one for case in TASK.open_cases for one in times(case.name, baseline=1.0, candidate=0.5)]
    timing = told(*every, problem="the rival could not be timed: boom")
    assert len(timing.latency) == len(TASK.open_cases)
    assert timing.notes == (
        "timing was not finished, though every case has a latency: the rival could not be timed: boom",
    )


def test_why_a_case_was_not_timed_is_told_by_its_own_samples() -> None:
    first, second = (case.name for case in TASK.open_cases[:2])
    left_out = {(first, CANDIDATE): 900, (second, BASELINE): 7, (second, CANDIDATE): 5}
    disturbed = "12 samples were disturbed by a drop of the clock or by others on the device"
    timing = told(*times(first, baseline=1.0, candidate=0.5), left_out=left_out)
    assert timing.notes == (f"timing was not whole: 1 of {len(TASK.open_cases)} cases: {disturbed}",)
    timing = told(left_out={(second, BASELINE): 7, (second, CANDIDATE): 5})
    assert timing.detail == f"not timed: {disturbed}"


def test_a_candidate_that_is_refused_has_no_latency() -> None:
    error = ErrorReport(kind="mismatch", message="wrong")
    timing = told(*times(baseline=1.0, candidate=0.5), verdict="wrong", error=error)
    assert (timing.latency, timing.verdict, timing.error, timing.ok) == ((), Verdict.WRONG, error, False)


def test_efficiency_is_of_the_cases_bytes_at_a_gpus_sizes() -> None:
    (one,) = told(*times(baseline=1.0, candidate=0.5), product="H200 SXM").latency
    elements = next(case for case in TASK.cases if case.name == "fp32").gpu["n"]
    assert one.efficiency is not None
    assert one.efficiency.bytes == 3 * 4 * elements
    peak = find_product("H200 SXM").memory_bytes_per_s
    assert one.efficiency.io_utilisation == pytest.approx(3 * 4 * elements / 0.5e-3 / peak)
    assert told(*times(baseline=1.0, candidate=0.5)).latency[0].efficiency is None


def test_a_time_that_no_device_can_do_is_noted() -> None:
    timing = told(*times(baseline=1.0, candidate=0.01), product="H200 SXM")
    assert any("fp32" in note and "needs at least" in note for note in timing.notes)


def test_mean_speedups_leave_out_cases_without_a_ratio() -> None:
    def case(speedup: float | None) -> Latency:
        return Latency(
            device="0",
            case="c",
            baseline_ms=1,
            candidate_ms=1,
            speedup=speedup,
            ci=None,
            confirmed="bound",
        )

    mean, geometric = mean_speedups([case(1.0), case(None), case(4.0)], ())
    assert mean == pytest.approx(2.5)
    assert geometric == pytest.approx(2.0)
    assert mean_speedups([case(None)], ()) == mean_speedups([], ()) == (None, None)


@pytest.mark.parametrize("timed_cases", [1, 4, 5])
async def test_the_speedup_over_some_cases_is_not_the_tasks(
    monkeypatch: pytest.MonkeyPatch, timed_cases: int
) -> None:
    names = [case.name for case in TASK.open_cases]
    found = [one for name in names[:timed_cases] for one in times(name, baseline=1.0, candidate=0.5)]

    class Measuring:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def measure(self, *_: object, **__: object) -> Timing:
            return told(*found, problem="full" if timed_cases < len(names) else "")

    async def channel() -> None: ...

    monkeypatch.setattr(evaluating, "Performance", Measuring)
    sheet = Sheet(TASK, "0", None)
    one = SimpleNamespace(
        _pool=None,
        _slot=SimpleNamespace(channel=channel),
        _task=TASK,
        _targets=(target("sm_90"),),
        _timing_seed=lambda: 1,
        _sheet=sheet,
        _source="",
        _rival=None,
        _against=None,
        _effort=WHOLE,
    )
    assert await Evaluating._time(cast(Any, one)) == (Verdict.CORRECT, None)
    evaluation = sheet.done(Verdict.CORRECT, None)
    assert len(evaluation.latency) == timed_cases
    assert evaluation.not_timed == tuple(names[timed_cases:])
    if timed_cases < len(names):
        assert (evaluation.speedup, evaluation.speedup_geomean) == (None, None)
        assert evaluation.in_part == f"not whole: {timed_cases} of {len(names)} cases"
    else:
        assert (evaluation.speedup, evaluation.in_part) == (pytest.approx(2.0), "")


def test_blocks_while_others_used_the_device_are_left_out_and_counted() -> None:
    one = process(CANDIDATE, 0, 1.0, began_s=10.0)
    other = process(BASELINE, 0, 1.0, began_s=20.0)
    points = tuple(
        Point(at_s=at / 10, clock_mhz=1900, others=1 if 100 <= at <= 105 else 0) for at in range(90, 230)
    )
    kept, left_out = undisturbed((one, other), Watched(QUIET, points))
    assert [len(each.blocks) for each in kept] == [1, 2]
    assert left_out == Counter({("fp32", CANDIDATE): 5})
    crowded = tuple(msgspec.structs.replace(each, others=int(each.at_s >= 9.5)) for each in points)
    assert undisturbed((one,), Watched(QUIET, crowded))[0] == ()
    waiting = tuple(msgspec.structs.replace(each, others=2) for each in points)
    assert undisturbed((one,), Watched(QUIET, waiting))[0] == (one,), "they hold memory and compute nothing"


@pytest.mark.parametrize(
    ("tape", "compiled", "words", "basis"),
    [
        (Taped("fp32", 2, ("a",), played=True), {"a", "b"}, "as compiled from the source", "proof"),
        (Taped("fp32", 2, ("a", "x"), played=True), {"a"}, "not among those", "evidence"),
        (Taped("fp32", why_not="host code"), {"a"}, "none: host code", "evidence"),
    ],
)
def test_a_tape_proves_something_only_with_binaries_of_the_source(
    tape: Taped, compiled: set[str], words: str, basis: str
) -> None:
    (fact,) = tape_facts(Measured(times=(), floor=None, tapes=(tape,)), compiled)
    assert words in fact.value
    assert fact.basis == basis


def test_an_exam_is_timed_with_values_of_its_own() -> None:
    def seed(*, exam: bool) -> int:
        return Evaluating._timing_seed(cast(Any, SimpleNamespace(_exam=exam, _seed=5)))

    assert seed(exam=False) == 5
    assert seed(exam=True) == derive(5, "confirm") != 5


# The engine's side of a clock.


class Server:
    """Starts real processes that end only when they are told to, in the place of timers."""

    def __init__(self) -> None:
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self.ended: list[int] = []
        self.starts = 1 << 30
        """How many it starts; the next ones hang."""
        self.hangs = asyncio.Event()
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def alive(self) -> list[int]:
        return [worker for worker, one in self.processes.items() if one.returncode is None]

    async def spawn_for_another(self, role: str, **_: Any) -> tuple[Child, int, socket.socket]:
        assert role == "timer"
        if len(self.processes) == self.starts:
            self.hangs.set()
            await asyncio.Event().wait()
        started = await asyncio.create_subprocess_exec("sleep", "600")
        worker = len(self.processes)
        self.processes[worker] = started
        child = Child(cast(ForkServer, self), worker, None)
        waiting = asyncio.create_task(self._wait(child, started))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        ours, theirs = socket.socketpair()
        theirs.close()
        return child, started.pid, ours

    def request_end(self, worker: int) -> None:
        self.ended.append(worker)
        self.processes[worker].kill()

    async def _wait(self, child: Child, started: asyncio.subprocess.Process) -> None:
        status = await started.wait()
        child.ended.set_result(Ended(worker=child.worker, status=status & 0xFF, leftover=0, killed=True))


class Watch:
    """Telemetry without a device."""

    def __init__(self) -> None:
        self.words: list[str] = []

    async def state(self, _own: object = None) -> DeviceState:
        return DeviceState(product="X")

    async def begin(self, _own: object = ()) -> None:
        self.words.append("begin")

    async def end(self) -> Watched:
        self.words.append("end")
        return Watched(QUIET)


class Pool:
    """A pool with one GPU that is not there."""

    def __init__(self) -> None:
        self.server, self.watch = Server(), Watch()
        self.spares, self.kernels = Spares(cast(ForkServer, self.server)), KernelCache()
        self.at_release: list[int] | None = None
        """Timers that lived when the lease was given back."""
        self.watching_at_release = False
        self.releasing: asyncio.Task[None] | None = None
        """The end of the timers, and then of the lease."""
        self.allowed = TimeLimits()

    def telemetry(self, _device: Device) -> Watch:
        return self.watch

    def limits(self, _device: Device) -> TimeLimits:
        return self.allowed

    @asynccontextmanager
    async def using(self, _slot: object) -> AsyncIterator[None]:
        self.watch.words.append("using")
        yield
        self.watch.words.append("used")

    @asynccontextmanager
    async def timing(self, _slot: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self.releasing is None:
                self._release()

    def release_after(self, _slot: object, ending: Coroutine[None, None, None]) -> None:
        async def release() -> None:
            await ending
            self._release()

        self.releasing = asyncio.create_task(release())

    def _release(self) -> None:
        self.at_release = self.server.alive
        self.watching_at_release = self.watch.words.count("begin") != self.watch.words.count("end")


class ScriptedClock:
    """The judge's end of its channel, in a test's hands."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._channel = AsyncChannel(end)

    async def hear(self, kind: type[Any]) -> Any:
        request = JUDGE_REQUESTS.decode(await self._channel.receive())
        assert isinstance(request, kind)
        return request

    async def tell(self, report: object) -> None:
        await self._channel.send(ENCODER.encode(report))

    async def started(self) -> Measure:
        """To where the device is the clock's: six timers run."""
        measure: Measure = await self.hear(Measure)
        await self.tell(NeedTimers(sides=(BASELINE, CANDIDATE), count=3, instead=True))
        timers = [await self.hear(Timer) for _ in range(6)]
        assert [(one.side, one.pair) for one in timers] == [
            (side, pair) for pair in range(3) for side in (BASELINE, CANDIDATE)
        ]
        await self.tell(LeaseWanted())
        await self.hear(Leased)
        return measure

    def leave(self) -> None:
        self._channel.close()


Script = Callable[[ScriptedClock, Pool], Coroutine[Any, Any, None]]


def descriptors() -> int:
    gc.collect()  # what tests before let go must not be counted
    return len(list(Path("/proc/self/fd").iterdir()))


async def timed(script: Script, pool: Pool, *, cancel: bool = False, **options: Any) -> Timing:
    """What `measure` says to a clock of this script; cancelled when the script is over where that is asked for."""
    slot = SimpleNamespace(device=GPU, server=pool.server)
    performance = Performance(cast(Any, pool), cast(Any, slot), TASK, target("sm_90"), seed=7)
    ours, theirs = socket.socketpair()
    channel, clock = AsyncChannel(ours), ScriptedClock(theirs)
    usual: dict[str, Any] = {"rival": None, "against": Against(Baseline("other.py", "x = 1"))} | options
    measuring = asyncio.create_task(performance.measure(channel, "x = 2", **usual))
    scripted = asyncio.create_task(script(clock, pool))
    try:
        if cancel:
            async with asyncio.timeout(60):
                await scripted
            measuring.cancel()
        await asyncio.wait([measuring], timeout=60)
        assert measuring.done(), "it goes on without end"
        if pool.releasing is not None:
            await pool.releasing
        return await measuring
    finally:
        measuring.cancel()
        scripted.cancel()
        with contextlib.suppress(asyncio.CancelledError, EOFError):
            await scripted
        channel.close()
        clock.leave()


async def to_the_end(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.started()
    await clock.tell(Alive())
    await clock.tell(Measured(times=times(baseline=1.0, candidate=0.5), floor=None))


async def to_the_lease(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.started()


@pytest.mark.asyncio
async def test_a_clock_is_served_to_the_end_and_no_timer_outlives_the_lease() -> None:
    pool = Pool()
    timing = await timed(to_the_end, pool)
    assert [one.speedup for one in timing.latency] == [pytest.approx(2.0)]
    assert (timing.before, timing.after) == (DeviceState(product="X"), DeviceState(product="X"))
    assert pool.at_release == []
    assert sorted(pool.server.ended) == list(range(6))
    assert pool.watch.words == ["begin", "end"]


@pytest.mark.asyncio
async def test_cancelled_while_it_is_timed_all_timers_end_before_the_device_is_given_back() -> None:
    pool = Pool()
    with pytest.raises(asyncio.CancelledError):
        await timed(to_the_lease, pool, cancel=True)
    assert pool.at_release == []
    assert len(pool.server.processes) == 6
    assert not pool.watching_at_release
    assert pool.watch.words == ["begin", "end"]


@pytest.mark.asyncio
async def test_cancelled_while_timers_start_those_that_run_end() -> None:
    pool = Pool()
    pool.server.starts = 3

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.hear(Measure)
        await clock.tell(NeedTimers(sides=(BASELINE, CANDIDATE), count=3, instead=True))
        await pool.server.hangs.wait()

    with pytest.raises(asyncio.CancelledError):
        await timed(script, pool, cancel=True)
    assert len(pool.server.processes) == 3
    assert pool.server.alive == []
    assert pool.watch.words == []


@pytest.mark.asyncio
async def test_a_judge_that_is_lost_while_it_times_is_said_in_words_and_leaves_no_timer() -> None:
    pool = Pool()

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.started()
        clock.leave()

    with pytest.raises(WorkerDied, match="the judge was lost while it timed"):
        await timed(script, pool)
    assert pool.at_release == []
    assert pool.watch.words == ["begin", "end"]


@pytest.mark.asyncio
async def test_a_judge_that_is_lost_while_timers_start_is_said_likewise() -> None:
    pool = Pool()

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.hear(Measure)
        await clock.tell(NeedTimers(sides=(BASELINE, CANDIDATE), count=3, instead=True))
        clock.leave()

    with pytest.raises(WorkerDied, match="the judge was lost while it timed"):
        await timed(script, pool)
    assert pool.server.alive == []


@pytest.mark.asyncio
async def test_a_clock_that_says_nothing_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ORACLE_S", 0.0)
    pool = Pool()
    pool.allowed = TimeLimits(call_s=0.05)

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.hear(Measure)
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await timed(script, pool)


@pytest.mark.asyncio
async def test_timers_wanted_instead_of_others_start_when_those_are_gone() -> None:
    pool = Pool()
    lived: list[list[int]] = []

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.started()
        await clock.tell(NeedTimers(sides=(TAPE,), count=1, instead=False))
        assert (await clock.hear(Timer)).pair == 3
        lived.append(pool.server.alive)
        await clock.tell(NeedTimers(sides=(CANDIDATE,), count=2, instead=True))
        assert [(await clock.hear(Timer)).pair for _ in range(2)] == [4, 5]
        lived.append(pool.server.alive)
        await clock.tell(Measured(times=(), floor=None, problem="enough"))

    timing = await timed(script, pool)
    assert lived == [[0, 1, 2, 3, 4, 5, 6], [7, 8]]
    assert "enough" in timing.detail
    assert pool.server.alive == []


@pytest.mark.asyncio
async def test_descriptors_are_given_back_however_it_ends() -> None:
    await timed(to_the_end, Pool())  # what is opened once a process is open
    before = descriptors()
    await timed(to_the_end, Pool())
    with pytest.raises(asyncio.CancelledError):
        await timed(to_the_lease, Pool(), cancel=True)
    assert descriptors() <= before


@pytest.mark.asyncio
async def test_what_is_to_be_timed_reaches_the_clock() -> None:
    heard: list[Measure] = []

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        heard.append(await clock.started())
        await clock.tell(Measured(times=(), floor=None))

    for rival in ("x = 3", "x = 2", None):
        await timed(script, Pool(), rival=rival, against=Against(Baseline("other.py", "x = 1"), cold=False))
    sources = {BASELINE: "x = 1", CANDIDATE: "x = 2"}
    assert [one.sources for one in heard] == [sources | {RIVAL: "x = 3"}, sources, sources]
    assert {(one.seed, one.against, one.cold, one.target) for one in heard} == {
        (7, "other.py", False, "sm_90")
    }


@pytest.mark.asyncio
async def test_without_a_baseline_nothing_is_started(tmp_path: Path) -> None:
    pool = Pool()
    slot = SimpleNamespace(device=GPU, server=pool.server)
    task = msgspec.structs.replace(TASK, folder=tmp_path)
    performance = Performance(cast(Any, pool), cast(Any, slot), task, target("sm_90"), seed=7)
    timing = await performance.measure(cast(Any, None), "x = 2", rival=None, against=Against())
    assert timing.detail.startswith("not timed: ")
    assert (timing.ok, pool.server.processes) == (None, {})
