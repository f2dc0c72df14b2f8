"""Judges kept kernels again, after a change of driver, ROCm, CUDA, torch or Triton, and compares with the earlier verdicts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from engine.judge.judging import Judge
from harness import DevicePool, Evaluation, HarnessError, Verdict
from harness.failures import first_failure
from harness.node.selection import targets_for
from harness.stages.evaluator import LocalEvaluator
from harness.stages.retries import ask_twice
from harness.wire.errors import NoDeviceLeft
from harness.wire.results.provenance import same_hardware
from sessions.kept_kernels import KeptKernel, kept_kernel
from sessions.state.cases import CaseRow, case_rows
from sessions.state.state import SessionState
from suites import Task

SLOWER = 0.03
"""Share by which a speedup must fall before the kernel counts as slower, with the whole interval."""


class RecheckResult(StrEnum):
    """The result of a recheck of one kernel."""

    BROKE = "broke"
    NOW_CORRECT = "now correct"
    SLOWER = "slower"
    FASTER = "faster"
    UNCHANGED = "unchanged"
    STILL_CORRECT = "still correct"
    """Its times are not compared."""
    STILL_WRONG = "not correct then either"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Change:
    """A speedup of now over the speedup of then, with its 95 % interval; below 1 is slower."""

    case: str
    """Empty for the geometric mean over the compared cases."""
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A kernel with its verdict of now."""

    kernel: KeptKernel
    now: Evaluation | None
    """`None` if it could not be judged."""
    failure: str = ""
    """Why it could not be judged."""
    limit: float = SLOWER

    @property
    def cases(self) -> list[tuple[CaseRow, CaseRow]]:
        """The cases that were timed then and now, in the order of now."""
        then, now = self.kernel.judged, self.now
        if then is None or now is None:
            return []
        earlier = {row.case: row for row in case_rows(then) if row.latency is not None}
        return [(earlier[row.case], row) for row in case_rows(now) if row.latency and row.case in earlier]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The change of each case that is compared, the greatest loss first."""
        before, now = self.kernel.judged, self.now
        if before is None or now is None or not same_hardware(before.provenance, now.provenance):
            return ()
        changes = (_change(*pair) for pair in self.cases)
        return tuple(sorted(filter(None, changes), key=lambda change: change.value))

    @property
    def mean(self) -> Change | None:
        """The mean change; `None` if no case is compared.

        Processes time all cases, so that the errors of cases are not independent: the interval is as wide as if
        they were equal.
        """
        changes = self.changes
        if not changes:
            return None
        ends = ([math.log(getattr(change, end)) for change in changes] for end in ("value", "low", "high"))
        return Change("", *(math.exp(math.fsum(logs) / len(changes)) for logs in ends))

    @property
    def result(self) -> RecheckResult:
        """The result by the verdict, then by the times."""
        before, mean = self.kernel.judged, self.mean
        if self.now is None or not self.now.verdict.counted:
            return RecheckResult.NOT_JUDGED
        was_wrong = before is not None and before.verdict.is_failure
        if self.now.verdict is not Verdict.CORRECT:
            return RecheckResult.STILL_WRONG if was_wrong else RecheckResult.BROKE
        if was_wrong:
            return RecheckResult.NOW_CORRECT
        if mean is None:
            return RecheckResult.STILL_CORRECT
        if any(change.high < 1 - self.limit for change in (mean, *self.changes)):
            return RecheckResult.SLOWER
        return RecheckResult.FASTER if mean.low > 1 + self.limit else RecheckResult.UNCHANGED

    @property
    def changed(self) -> str:
        """The difference: `verdict`, `error` (another kind), `speedup`, or nothing."""
        before, now = self.kernel.judged, self.now
        if before is None or now is None or before.verdict is not now.verdict:
            return "verdict"
        if before.error is not None and now.error is not None and before.error.kind != now.error.kind:
            return "error"
        return "speedup" if self.result in (RecheckResult.SLOWER, RecheckResult.FASTER) else ""

    @property
    def why(self) -> str:
        """Why it is not correct or not judged, or why its times are not compared; empty if they are compared."""
        before, now = self.kernel.judged, self.now
        if now is None:
            return self.failure
        if now.verdict is not Verdict.CORRECT:
            return now.error.first_line if now.error is not None else ""
        if self.result is RecheckResult.NOW_CORRECT:
            return (
                f"then: {before.error.first_line}" if before is not None and before.error is not None else ""
            )
        if self.mean is not None:
            return ""
        if before is None:
            return "times not compared: its session is gone"
        for evaluation, when in ((now, "now"), (before, "then")):
            if not evaluation.latency:
                return f"times not compared: not timed {when}" + (
                    " on cpu" if evaluation.device == "cpu" else ""
                )
        if not same_hardware(before.provenance, now.provenance):
            return "times not compared: other hardware"
        return (
            "times not compared: no case has an exact ratio then and now, against one baseline, by one method"
        )


def compare_sessions(before: SessionState, again: SessionState) -> list[Rechecked]:
    """Return each attempt of a session that another session judged again, with both evaluations.

    The two attempts have the same instance and the same source: equal sources of an instance have one verdict.
    """
    verdicts = {
        (instance.key, attempt.source): attempt.timed_evaluation
        for instance in again.instances.values()
        for attempt in instance.attempts
    }
    session = before.started.session if before.started is not None else ""
    return [
        Rechecked(kept_kernel(session, before, attempt), verdicts[instance.key, attempt.source])
        for instance in before.instances.values()
        for attempt in instance.attempts
        if attempt.source is not None and (instance.key, attempt.source) in verdicts
    ]


def _change(before: CaseRow, now: CaseRow) -> Change | None:
    """Return the change of a case; `None` if one of its two ratios is missing or a bound, or they mean different things."""
    if before.interval is None or now.interval is None or not before.speedup or not now.speedup:
        return None
    is_resized = before.sizes and now.sizes and before.sizes != now.sizes
    if is_resized or _conditions(before) != _conditions(now):
        return None
    value = math.log(now.speedup / before.speedup)
    below = math.hypot(math.log(now.speedup / now.interval[0]), math.log(before.interval[1] / before.speedup))
    above = math.hypot(math.log(now.interval[1] / now.speedup), math.log(before.speedup / before.interval[0]))
    return Change(now.case, math.exp(value), math.exp(value - below), math.exp(value + above))


def _conditions(row: CaseRow) -> tuple[str, ...]:
    return (row.against, row.latency.cache, row.latency.method) if row.latency is not None else ()


async def recheck(
    kernels: Sequence[KeptKernel],
    tasks: Mapping[str, Task | str],
    pool: DevicePool,
    *,
    targets: Sequence[str],
    limit: float = SLOWER,
    on_done: Callable[[Rechecked], None],
) -> list[Rechecked]:
    """Judge every kernel again, on the inputs and against the timing baseline of its session; in their order.

    `tasks` maps a full name to the task, or to why it cannot be judged. Without `targets`, kernels compile for the
    device's own target, on `cpu` for those of their session. `on_done` is called after each kernel.
    """
    turns = asyncio.Semaphore(pool.slots + 1)

    async def evaluate(kernel: KeptKernel, task: Task) -> Evaluation:
        started = kernel.state.started if kernel.state is not None else None
        on_cpu = pool.devices[0].kind == "cpu"
        names = targets or (started.targets if started is not None and on_cpu else ())
        judge = Judge(
            LocalEvaluator(pool),
            targets=targets_for(pool.devices, names),
            seed=started.seed if started is not None else 0,
            against=started.against if started is not None else "",
            against_source=started.against_source if started is not None else "",
        )
        return await ask_twice(partial(judge.evaluate, kernel.source, task, on_stage=lambda _: None))

    async def judge(kernel: KeptKernel) -> Rechecked:
        task = tasks[kernel.task]
        now, failure = None, ""
        async with turns:
            if isinstance(task, str):
                failure = task
            else:
                try:
                    now = await evaluate(kernel, task)
                except NoDeviceLeft:
                    raise
                except HarnessError as error:
                    failure = str(error)
            rechecked = Rechecked(kernel, now, failure, limit)
        on_done(rechecked)
        return rechecked

    try:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(judge(kernel), name=f"recheck/{kernel.task}") for kernel in kernels]
    except ExceptionGroup as failures:
        raise first_failure(failures) from None
    return [job.result() for job in jobs]
