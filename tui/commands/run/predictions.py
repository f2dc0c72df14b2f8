"""`wavedeck suites judge NAME FILE`: judge predictions that were made elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from engine.judge.evaluating import evaluation_without_stages
from engine.plan.request import RunPlan
from engine.predictions.formats import write_results
from engine.predictions.matching import Sample, match, read_predictions
from engine.predictions.original import judge_by_definition, judge_originals
from engine.predictions.original_verdicts import ORIGINAL
from engine.predictions.plans import earlier_session, plan_predictions
from engine.predictions.results import (
    WAVEDECK,
    PredictionResult,
    judged_result,
    original_results,
    session_results,
)
from harness import Device, DevicePool
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.gpus.capacity import RECORDED_CASE_BYTES
from harness.recording.original import check_definition
from sessions.catalog import Standing, session_state
from sessions.home import Home, home_from
from sessions.metrics.formulas import mean_pass_at_k
from suites import public_suite_names
from suites.public.task import PublicTask
from tui.commands.keep.recording import judged_tasks
from tui.commands.options import say_default_target
from tui.commands.ready import begin, go_on
from tui.commands.run.public_suites import public_suite
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import counted
from tui.print.plain import emit, emit_json, listing

SEED = 0
"""Seed of the inputs without `--seed`: the same candidate gets the same verdict."""


def judge_predictions(
    suite: str,
    file: Path,
    settings: RunPlan,
    *,
    protocol: str,
    only: str,
    again: bool,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Judge a file of predictions, print the results and write them in the suite's own format.

    `only` is a number of predictions, or a task; empty: all.
    """
    home = home_from(os.environ)
    if suite not in public_suite_names(registry=home.suites):
        raise Complaint(
            f"{suite}: no public benchmark has this name; add a clone with: wavedeck suites add NAME PATH"
        )
    reading = read_predictions(file)
    tasks = public_suite(suite, home.suites).tasks
    if protocol == ORIGINAL and tasks:
        check_definition(tasks[0].kind)
    samples, unmatched = match(reading.predictions, tasks)
    problems = [*reading.problems, *unmatched]
    for problem in problems:
        say(f"not judged: {problem}")
    samples = _chosen(samples, only)
    found: Sequence[PredictionResult | None] = ()
    session, code = "", ExitCode.DONE
    if samples:
        device = asyncio.run(wait_for_devices(settings.devices, on_wait=say))[0]
        seed, targets = SEED if settings.seed is None else settings.seed, settings.targets
        if protocol == ORIGINAL:
            found = _judge_originals(home, samples, device, targets, seed, again=again)
        else:
            found, session, code = _judge_as_session(
                home, samples, file.name, device, targets, seed, again=again
            )
    results = [result for result in found if result is not None]
    lost = [sample.name for sample, result in zip(samples, found, strict=True) if result is None]
    suffix = "" if protocol == WAVEDECK else f"-{protocol}"
    folder = out or home.root / "results" / suite / (file.stem + suffix)
    written = write_results(tasks[0].kind, results, folder, name=file.stem) if tasks else []
    if as_json:
        emit_json(
            {
                "results": [_entry(result) for result in results],
                "lost": lost,
                "not_judged": problems,
                "session": session or None,
                "files": written,
            }
        )
    else:
        _print(results, session, tasks, problems, written)
    on_cpu = (result.evaluation for result in results if result.device == "cpu")
    errors = (evaluation.error for evaluation in on_cpu if evaluation is not None)
    say_default_target((error.target for error in errors if error is not None), settings.targets)
    if lost:
        say(f"{len(lost)} have no verdict; give the same command again to judge them")
        return ExitCode.FAILED if code is ExitCode.DONE else code
    return ExitCode.NO if problems or not samples else ExitCode.DONE


def _chosen(samples: Sequence[Sample], only: str) -> list[Sample]:
    if not only:
        return list(samples)
    if only.isdecimal():
        return list(samples[: int(only)])
    name = only.partition("/")[2] if only.count("/") == 1 and not only.endswith(".py") else only
    chosen = [sample for sample in samples if {name, only} & {sample.public.name, sample.public.file}]
    if not chosen:
        raise Complaint(f"--only {only}: no prediction is for this task")
    return chosen


def _judge_as_session(
    home: Home,
    samples: Sequence[Sample],
    file: str,
    device: Device,
    targets: Sequence[str],
    seed: int,
    *,
    again: bool,
) -> tuple[list[PredictionResult | None], str, ExitCode]:
    """Judge the samples as a session. The newest session of the same samples is continued, or read if it is finished.

    Returns the results in the samples' order (`None` without a verdict), the session, and how it ended.
    """
    tasks = judged_tasks(
        dict.fromkeys(sample.public.id for sample in samples),
        home.suites,
        devices=[device.name],
        targets=targets,
    )
    able = [sample for sample in samples if not isinstance(tasks[sample.public.id], str)]
    session, code = "", ExitCode.DONE
    judged: dict[tuple[str, int], PredictionResult] = {}
    if able:
        plan = plan_predictions(able, file=file, seed=seed, devices=[device], targets=targets)
        earlier = None if again else earlier_session(home, plan)
        if earlier is not None and earlier.state is Standing.FINISHED:
            say(f"{len(able)} of {len(able)} have a result already; --again judges them again")
        session = plan.session if earlier is None else earlier.name
        code = begin(plan, home) if earlier is None else go_on(home, session)
        state = session_state(home, session)
        verdicts = session_results(state, {sample.public.id: sample.public for sample in able})
        judged = {(result.task, result.sample): result for result in verdicts}
    for sample in samples:
        if isinstance(reason := tasks[sample.public.id], str):
            evaluation = evaluation_without_stages(sample.public.id, device.name, "recording", reason)
            result = judged_result(sample.public, sample.number, sample.source, evaluation)
            judged[result.task, result.sample] = result
    return [judged.get((sample.public.id, sample.number)) for sample in samples], session, code


def _judge_originals(
    home: Home,
    samples: Sequence[Sample],
    device: Device,
    targets: Sequence[str],
    seed: int,
    *,
    again: bool,
) -> list[PredictionResult | None]:
    """Judge the samples by the original protocol; returns results as `_judge_as_session`.

    A sample with a kept result is not judged, unless `again`.
    """
    results = original_results(home.suites, device)
    keys = [sample.key(ORIGINAL, seed) for sample in samples]
    kept = 0 if again else sum(results.find(key) is not None for key in keys)
    if kept:
        say(f"{kept} of {len(samples)} have a result already")

    async def judge() -> list[Sample]:
        async with DevicePool([device.name], case_bytes=RECORDED_CASE_BYTES) as pool:
            by_definition = partial(judge_by_definition, pool=pool, target=targets_for([device], targets)[0])
            return await judge_originals(
                samples,
                results,
                by_definition,
                device=device.name,
                slots=pool.slots,
                seed=seed,
                again=again,
                say=say,
            )

    lost = asyncio.run(judge()) if kept < len(samples) else []
    kept_results = (
        None if sample in lost else results.find(key) for sample, key in zip(samples, keys, strict=True)
    )
    return [
        None if result is None else msgspec.structs.replace(result, sample=sample.number)
        for sample, result in zip(samples, kept_results, strict=True)
    ]


def _entry(result: PredictionResult) -> dict[str, object]:
    fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != "evaluation"}
    return fields | {"speedup": result.speedup}


def _print(
    results: Sequence[PredictionResult],
    session: str,
    tasks: Sequence[PublicTask],
    problems: Sequence[str],
    written: Sequence[Path],
) -> None:
    if results:
        emit(results_table(results) + "\n")
    emit("\n".join(summary(results, tasks=len(tasks), problems=len(problems))))
    if session:
        emit(f"session {session}: wavedeck report {session}")
    for path in written:
        emit(f"written: {path}")


def results_table(results: Sequence[PredictionResult]) -> str:
    """Return one row for each prediction, failures first."""
    several = any(result.sample > 1 for result in results)
    fields: tuple[Field[PredictionResult], ...] = (
        Field(Column("task", keep=True), lambda result: result.task.partition("/")[2]),
        Field(Number("sample", if_known=True), lambda result: str(result.sample) if several else ""),
        Field(Column("verdict", keep=True), lambda result: result.verdict),
        Field(
            Number("speedup", if_known=True),
            lambda result: "" if result.speed is None else result.speed.figure,
        ),
        Field(Column("why", least=30), lambda result: result.why),
    )
    order = sorted(results, key=lambda result: (result.execution, result.task, result.sample))
    return listing(fields, order)


def summary(results: Sequence[PredictionResult], *, tasks: int, problems: int) -> list[str]:
    """Return the counts and accuracies, a line for each."""
    by_task: dict[str, list[PredictionResult]] = {}
    for result in results:
        if result.counted:
            by_task.setdefault(result.task, []).append(result)
    counts = Counter(result.verdict for result in results)
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    lines = [f"{counted(len(results), 'prediction')}: {words or 'none judged'}"]
    if problems:
        lines.append(f"{counted(problems, 'line')} not judged, see above")
    answered = len({result.task for result in results})
    if answered < tasks:
        lines.append(f"{tasks - answered} of {tasks} tasks of the suite have no prediction")
    judged = [result for task_results in by_task.values() for result in task_results]
    if judged:
        call = sum(result.call for result in judged) / len(judged)
        execution = sum(result.execution for result in judged) / len(judged)
        over = f"over {counted(len(judged), 'prediction')} that can be judged"
        lines.append(f"call accuracy {call:.1%}, execution accuracy {execution:.1%}, {over}")
    fewest_samples = min(map(len, by_task.values()), default=0)
    if fewest_samples > 1:
        pairs = [
            (len(task_results), sum(result.execution for result in task_results))
            for task_results in by_task.values()
        ]
        shares = ((k, mean_pass_at_k(pairs, k)) for k in range(1, fewest_samples + 1))
        lines.append(", ".join(f"pass@{k} {share:.1%}" for k, share in shares if share is not None))
    if results and results[0].protocol == ORIGINAL:
        lines.append("original protocol: the benchmark's own definition of correct; speedup is not measured")
    return lines
