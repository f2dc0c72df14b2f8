"""`wavedeck eval --suite S --predictions FILE`: judge predictions that were made elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from engine.predictions.formats import write_results
from engine.predictions.judging import ProtocolJudge, WavedeckJudge, judge_samples
from engine.predictions.matching import Sample, match
from engine.predictions.original import OriginalJudge
from engine.predictions.reading import read_predictions
from engine.predictions.results import ORIGINAL, WAVEDECK, PredictionResult, ResultFile
from engine.predictions.session import PredictionSession
from harness import Device, DevicePool, Target
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.capacity import RECORDED_CASE_BYTES
from harness.recording.original import check_definition
from sessions.home import Home, home_from
from sessions.metrics.accuracy import mean_pass_at_k
from sessions.state.ratio_words import times
from suites import public_suite_names
from suites.public.task import PublicTask
from tui.commands.keep.public_suites import public_suite
from tui.commands.options import say_default_target
from tui.config import Settings
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.tables import Column, Field
from tui.facts.vocabulary import counted
from tui.print.plain import emit, emit_json, listing

SEED = 0
"""Seed of the inputs without `--seed`: the same candidate gets the same verdict."""


@dataclass(frozen=True, slots=True)
class PredictionsOptions:
    """The options of the command."""

    suite: str
    predictions: Path
    """The file."""
    protocol: str = WAVEDECK
    only: str = ""
    """A number of predictions, or a task; empty: all."""
    again: bool = False
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class JudgedPredictions:
    """Results of all predictions of a file."""

    results: list[PredictionResult]
    lost: list[Sample]
    """Samples on which the judge failed."""
    session: str


def judge_predictions(request: PredictionsOptions, settings: Settings, *, as_json: bool) -> ExitCode:
    """Judge a file of predictions, print the results and write them in the suite's own format."""
    home = home_from(os.environ)
    if request.suite not in public_suite_names(registry=home.suites):
        raise Complaint(
            f"--suite {request.suite}: no public benchmark has this name; add a clone with: wavedeck suites add NAME PATH"
        )
    reading = read_predictions(request.predictions)
    tasks = public_suite(request.suite, home.suites).tasks
    if request.protocol == ORIGINAL and tasks:
        check_definition(tasks[0].kind)
    samples, unmatched = match(reading.predictions, tasks)
    problems = [*reading.problems, *unmatched]
    for problem in problems:
        say(f"not judged: {problem}")
    samples = _chosen(samples, request.only)
    judged = asyncio.run(_judge(samples, request, settings)) if samples else JudgedPredictions([], [], "")
    protocol = "" if request.protocol == WAVEDECK else f"-{request.protocol}"
    folder = request.out or home.root / "results" / request.suite / (request.predictions.stem + protocol)
    written = (
        write_results(tasks[0].kind, judged.results, folder, name=request.predictions.stem) if tasks else []
    )
    if as_json:
        emit_json(
            {
                "results": [_entry(result) for result in judged.results],
                "lost": [sample.name for sample in judged.lost],
                "not_judged": problems,
                "session": judged.session or None,
                "files": written,
            }
        )
    else:
        _print(judged, tasks, problems, written)
    on_cpu = (result.why for result in judged.results if result.device == "cpu")
    say_default_target(on_cpu, settings.targets)
    if judged.lost:
        say(f"the judge failed on {len(judged.lost)}; give the same command again to judge them")
        return ExitCode.FAILED
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


async def _judge(
    samples: Sequence[Sample], request: PredictionsOptions, settings: Settings
) -> JudgedPredictions:
    home = home_from(os.environ)
    chosen = (await wait_for_devices(settings.devices, on_wait=say))[:1]
    device = chosen[0]
    seed = SEED if settings.seed is None else settings.seed
    targets = targets_for(chosen, settings.targets)
    results = ResultFile(home.suites, request.suite, device.kind if device.kind == "cpu" else "gpu")
    key_of = partial(Sample.key, protocol=request.protocol, seed=seed)
    kept_count = 0 if request.again else sum(results.find(key_of(sample)) is not None for sample in samples)
    if kept_count:
        say(f"{kept_count} of {len(samples)} have a result already; --again judges them again")
    lost: list[Sample] = []
    session = None
    if kept_count < len(samples):
        async with DevicePool([device.name], case_bytes=RECORDED_CASE_BYTES) as pool:
            judge: ProtocolJudge = OriginalJudge(pool=pool, target=targets[0], seed=seed)
            if request.protocol == WAVEDECK:
                judge = WavedeckJudge(home.suites, pool=pool, targets=targets, seed=seed)
                session = _open_session(home, samples, request, device, targets, seed)
            lost = await judge_samples(
                samples,
                judge,
                results,
                key_of=key_of,
                again=request.again,
                slots=pool.slots,
                session=session,
                say=say,
            )
    all_results = [
        msgspec.structs.replace(result, sample=sample.number)
        for sample in samples
        if (result := results.find(key_of(sample))) is not None
    ]
    return JudgedPredictions(
        all_results,
        lost,
        max((result.session for result in all_results), default="") if session is None else session.name,
    )


def _open_session(
    home: Home,
    samples: Sequence[Sample],
    request: PredictionsOptions,
    device: Device,
    targets: Sequence[Target],
    seed: int,
) -> PredictionSession:
    session = PredictionSession.open(
        home,
        samples,
        file=request.predictions.name,
        seed=seed,
        device=device.name,
        targets=[target.name for target in targets],
        again=request.again,
    )
    say(f"session {session.name}")
    return session


def _entry(result: PredictionResult) -> dict[str, object]:
    fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != "evaluation"}
    return fields | {"speedup": result.speedup}


def _print(
    judged: JudgedPredictions, tasks: Sequence[PublicTask], problems: Sequence[str], written: Sequence[Path]
) -> None:
    results = judged.results
    if results:
        emit(results_table(results) + "\n")
    emit("\n".join(summary(results, tasks=len(tasks), problems=len(problems))))
    if judged.session:
        emit(f"session {judged.session}: wavedeck report {judged.session}")
    for path in written:
        emit(f"written: {path}")


def results_table(results: Sequence[PredictionResult]) -> str:
    """Return one row for each prediction, failures first."""
    several = any(result.sample > 1 for result in results)
    fields: tuple[Field[PredictionResult], ...] = (
        Field(Column("task", keep=True), lambda result: result.task.partition("/")[2]),
        Field(
            Column("sample", right=True, if_known=True), lambda result: str(result.sample) if several else ""
        ),
        Field(Column("verdict", keep=True), lambda result: result.verdict),
        Field(
            Column("speedup", right=True, if_known=True),
            lambda result: "" if result.speedup is None else times(result.speedup),
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
