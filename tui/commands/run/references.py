"""`wavedeck suites references`: judge a public benchmark's own references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from engine.predictions.results import ResultLines, judge_each
from harness import DevicePool
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.gpus.capacity import RECORDED_CASE_BYTES
from harness.recording.references import ReferenceResult, Result, judge_reference
from suites.public.recorded import recorded_folder, text_digest
from suites.public.task import PublicTask
from tui.commands.options import say_default_target
from tui.diagnostics import say
from tui.facts.tables import Column, Field, Number
from tui.print.plain import listing


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
    kind = device.kind if device.kind == "cpu" else "gpu"
    # After a change of its texts, a task has no result.
    results = ResultLines(
        recorded_folder(registry, tasks[0].suite) / f"references-{kind}.jsonl",
        ReferenceResult,
        lambda result: (result.task, result.target, result.digest),
    )
    keys = {task.id: (task.id, target.name, text_digest(task)) for task in tasks}
    missing = [task for task in tasks if again or results.find(keys[task.id]) is None]
    if len(missing) < len(tasks):
        say(
            f"{len(tasks) - len(missing)} of {len(tasks)} have a result already; --again records and judges them again"
        )
    lost: dict[str, ReferenceResult] = {}

    async def judge(task: PublicTask) -> str:
        result = await judge_reference(task, registry, pool=pool, target=target, again=again)
        if result.result is Result.LOST:
            lost[task.id] = result
        else:
            results.add(result)
        return f"{task.name}: {_words(result)}"

    if missing:
        rest = "the others keep their earlier ones" if again else "the same command judges the rest"
        async with DevicePool([device.name], case_bytes=RECORDED_CASE_BYTES, timed=False) as pool:
            await judge_each(missing, judge, slots=pool.slots, say=say, rest=rest)
    judged = (lost.get(task.id) or results.find(keys[task.id]) for task in tasks)
    all_results = [result for result in judged if result is not None]
    if kind == "cpu":
        refused = (result.target for result in all_results if result.result is Result.NOT_COMPILED)
        say_default_target(refused, targets)
    return all_results


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


ORDER = (Result.WRONG, Result.NOT_COMPILED, Result.TIMEOUT, Result.UNSUPPORTED, Result.LOST, Result.CORRECT)
FIELDS: tuple[Field[ReferenceResult], ...] = (
    Field(Column("task", keep=True), lambda result: result.task.partition("/")[2]),
    Field(Column("reference", keep=True), lambda result: result.result.value),
    Field(Number("calls", drop=1), lambda result: str(result.calls or "")),
    Field(Column("oracle", keep=True, if_known=True), lambda result: "weak" if result.weak else ""),
    Field(Column("why", least=30), lambda result: result.why or result.weak or "; ".join(result.notes)),
)


def results_table(results: Sequence[ReferenceResult]) -> str:
    """Return one row for each reference, failures first."""
    return listing(FIELDS, sorted(results, key=lambda result: (ORDER.index(result.result), result.task)))
