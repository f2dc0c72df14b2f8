"""`wavedeck suites references`: judge a public benchmark's own references."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from engine.predictions.results import ResultLines
from harness import DevicePool, Target
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.capacity import RECORDED_CASE_BYTES
from harness.recording.references import ReferenceResult, Result, judge_reference
from suites.public.recorded import recorded_folder, text_digest
from suites.public.task import PublicTask
from tui.diagnostics import say
from tui.facts.tables import Column
from tui.facts.vocabulary import UNKNOWN
from tui.print.plain import table


class ReferencesFile:
    """The results of one suite on one kind of device, for one target."""

    def __init__(self, registry: Path, suite: str, device: str, target: str) -> None:
        self._target = target
        path = recorded_folder(registry, suite) / f"references-{device}.jsonl"
        self._lines = ResultLines(path, ReferenceResult, lambda result: (result.task, result.target))

    def find(self, public: PublicTask) -> ReferenceResult | None:
        """Return the result of a task, unless its texts have changed since."""
        result = self._lines.find((public.id, self._target))
        return result if result is not None and result.digest == text_digest(public) else None

    def add(self, result: ReferenceResult) -> None:
        """Keep a result."""
        self._lines.add(result)


async def judge_all(
    tasks: Sequence[PublicTask],
    registry: Path,
    *,
    devices: Sequence[str],
    targets: Sequence[str],
    again: bool,
) -> list[ReferenceResult]:
    """Judge the references without a result, with `again` all of them from a new recording.

    Returns all results, in the order of the tasks.
    """
    device = (await wait_for_devices(devices, on_wait=say))[0]
    if not tasks:
        return []
    target = targets_for([device], targets)[0]
    results = ReferencesFile(
        registry, tasks[0].suite, device.kind if device.kind == "cpu" else "gpu", target.name
    )
    missing = [task for task in tasks if again or results.find(task) is None]
    if len(missing) < len(tasks):
        say(
            f"{len(tasks) - len(missing)} of {len(tasks)} have a result already; --again records and judges them again"
        )
    lost: dict[str, ReferenceResult] = {}
    if missing:
        pool = DevicePool([device.name], case_bytes=RECORDED_CASE_BYTES, timed=False)
        async with _stopping(), pool:
            await _judge_missing(missing, registry, pool, target, results.add, lost, again=again)
    return [result for task in tasks if (result := lost.get(task.id) or results.find(task)) is not None]


@asynccontextmanager
async def _stopping() -> AsyncIterator[None]:
    """Say what stays if a person stops the block."""
    try:
        yield
    except asyncio.CancelledError:
        say("stopped; the results so far are kept, and the same command without --again judges the rest")
        raise


async def _judge_missing(
    missing: Sequence[PublicTask],
    registry: Path,
    pool: DevicePool,
    target: Target,
    keep: Callable[[ReferenceResult], None],
    lost: dict[str, ReferenceResult],
    *,
    again: bool,
) -> None:
    waiting = iter(missing)
    done = 0

    async def judge_next() -> None:
        nonlocal done
        for task in waiting:
            result = await judge_reference(task, registry, pool=pool, target=target, again=again)
            done += 1
            if result.result is Result.LOST:
                lost[task.id] = result
            else:
                keep(result)
            say(f"{done} of {len(missing)}: {task.name}: {_words(result)} ({result.seconds:.0f} s)")

    async with asyncio.TaskGroup() as group:
        for number in range(pool.slots):
            group.create_task(judge_next(), name=f"references/{number}")


def _words(result: ReferenceResult) -> str:
    weak = ", weak oracle" if result.weak else ""
    return f"{result.result}{weak}" + (f": {result.why}" if result.why else "")


def summary(results: Sequence[ReferenceResult]) -> str:
    """Return the counts on one line."""
    counts = Counter(result.result for result in results)
    weak = sum(bool(result.weak) for result in results if result.result is Result.CORRECT)
    parts = [
        f"{counts[kind]} {kind}"
        + (f" ({weak} with a weak oracle)" if kind is Result.CORRECT and weak else "")
        for kind in Result
        if counts[kind]
    ]
    return f"{len(results)} references: {', '.join(parts)}"


def results_table(results: Sequence[ReferenceResult]) -> str:
    """Return one row for each reference, failures first."""
    order = [
        Result.WRONG,
        Result.NOT_COMPILED,
        Result.TIMEOUT,
        Result.UNSUPPORTED,
        Result.LOST,
        Result.CORRECT,
    ]
    rows = [
        (
            result.task.partition("/")[2],
            result.result.value,
            str(result.calls) if result.calls else UNKNOWN,
            "weak" if result.weak else UNKNOWN,
            result.why or result.weak or "; ".join(result.notes) or UNKNOWN,
        )
        for result in sorted(results, key=lambda result: (order.index(result.result), result.task))
    ]
    columns = [
        Column("task", keep=True),
        Column("reference", keep=True),
        Column("calls", right=True, drop=1),
        Column("oracle", keep=True, if_known=True),
        Column("why", least=30),
    ]
    return table(columns, rows)
