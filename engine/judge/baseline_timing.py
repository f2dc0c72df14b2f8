"""Times a task's baseline before the first prompt, so that the model knows what it has to beat.

Once per session; again if the session went on with other hardware or software.
"""

from __future__ import annotations

import asyncio
from functools import partial

from engine.judge.bench import Bench
from engine.prompting.baseline_facts import KERNEL_MARK, BaselineFacts, baseline_facts
from harness import Evaluation, StageEvent, Verdict
from harness.stages.retries import ask_twice
from harness.stages.timing.baselines import Baseline
from sessions.events import BaselineMeasured, BaselineStageStarted, Notice
from sessions.state.speed import are_comparable
from sessions.state.state import SessionState
from suites import Task, baseline_source


async def known_baseline(bench: Bench, task: Task, *, show_reference: bool) -> BaselineFacts:
    """Returns the baseline of a task; on a GPU with its times, if it is a Triton kernel.

    Without `show_reference` its source is left out where it is the answer that a benchmark asks for.

    The first instance of a task times it, and the others wait. A result in the journal is repeated only if an attempt of the
    task was judged later with another provenance.
    """
    baseline = await asyncio.to_thread(bench.judge.baseline, task)
    shown = untimed_baseline(task, baseline, show_reference=show_reference)
    if bench.judge.devices[0].kind == "cpu" or KERNEL_MARK not in baseline.source:
        return shown
    async with bench.timing_baselines.setdefault(task.id, asyncio.Lock()):
        evaluation = bench.recorder.state.baselines.get(task.id)
        if evaluation is None or not are_comparable(evaluation, _newest_timed(bench.recorder.state, task)):
            evaluation = await _evaluate(bench, task, baseline)
    timed = evaluation if evaluation.verdict is Verdict.CORRECT else None
    return baseline_facts(shown.name, shown.source, timed, shown.reference)


def untimed_baseline(task: Task, baseline: Baseline, *, show_reference: bool) -> BaselineFacts:
    """Returns a baseline as `known_baseline`, without times."""
    hidden = task.script is not None and task.script.hides_baseline and not show_reference
    reference = baseline_source(task) if task.script is not None and not hidden else ""
    shown = "" if hidden or baseline.source == reference else baseline.source
    return baseline_facts(baseline.name, shown, None, reference)


def _newest_timed(state: SessionState, task: Task) -> Evaluation | None:
    """The evaluation of the task's attempt that was timed last; `None` if none was."""
    name = task.id
    judged = [
        attempt
        for instance in state.instances.values()
        if instance.task == name
        for attempt in instance.attempts
        if attempt.verdict is not None
    ]
    newest_first = sorted(judged, key=lambda attempt: attempt.judged_seq, reverse=True)
    evaluations = (attempt.evaluation for attempt in newest_first)
    return next((evaluation for evaluation in evaluations if evaluation and evaluation.latency), None)


async def _evaluate(bench: Bench, task: Task, baseline: Baseline) -> Evaluation:
    """Judge the baseline like a candidate and record the result; if the judge fails, it is asked once more."""
    name = f"{task.short_id} baseline"
    async with bench.turn(name) as (use, enter):

        def on_stage(report: StageEvent) -> None:
            if report.result is None:
                bench.recorder.record(BaselineStageStarted(task=task.id, stage=report.stage))
            enter(report)

        evaluation = await ask_twice(partial(bench.judge.evaluate, baseline.source, task, on_stage=on_stage))
    if evaluation.verdict is not Verdict.CORRECT:
        why = evaluation.error.message if evaluation.error else str(evaluation.verdict)
        words = f"the baseline of {task.short_id} was not timed, so prompts show only its source: {why}"
        bench.recorder.record(Notice(level="warning", message=words))
    elif evaluation.not_timed:
        why = "; ".join(evaluation.notes) or "no reason is known"
        words = f"the baseline of {task.short_id} got no time in {', '.join(evaluation.not_timed)}, so prompts lack it: {why}"
        bench.recorder.record(Notice(level="warning", message=words))
    await bench.recorder.record_durable(
        BaselineMeasured(task=task.id, evaluation=evaluation, device_s=use.seconds)
    )
    return evaluation
