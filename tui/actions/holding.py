"""Checks of `wavedeck apply`: a kernel on other architectures, and the shapes at which it was faster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from harness import DevicePool, Evaluation, Outcome, Target, Verdict, evaluate
from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.stages.judged_task import resolve_task
from harness.stages.task_questions import specify_cases
from harness.wire.calls.case_specs import CASE_SPECS
from harness.wire.results.provenance import Provenance
from sessions.applying.guarding import Arguments, guarded
from sessions.applying.placing import Home
from sessions.kept_kernels import KeptKernel
from suites import Task
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.evaluation.verdict import headline


def timed_target(provenance: Provenance | None) -> Target:
    """Return the architecture of the GPU that took the times."""
    product = provenance.product if provenance is not None else ""
    try:
        return target(find_product(product).target)
    except KeyError as error:
        raise Complaint(
            f"no times of a known GPU: {product or 'the GPU'} is not in the table of products"
        ) from error


def check_holds(kernel: KeptKernel, task: Task, names: Sequence[str]) -> None:
    """Judge the kernel on `cpu` for each architecture. Raises `Complaint` with the first for which it is not correct."""
    targets = [target(name) for name in names]
    seed = kernel.state.started.seed if kernel.state is not None and kernel.state.started is not None else 1

    async def judge() -> list[Evaluation]:
        async with DevicePool(("cpu",)) as pool:
            return [
                await evaluate(kernel.source, task, pool, targets=(compiled_for,), seed=seed, against=None)
                for compiled_for in targets
            ]

    if targets:
        say(f"judging {kernel.attempt} for {', '.join(names)}")
    for name, evaluation in zip(names, asyncio.run(judge()) if targets else (), strict=True):
        if evaluation.verdict is not Verdict.CORRECT:
            raise Complaint(
                f"{kernel.attempt} does not hold for {name}: {headline(evaluation)}", code=ExitCode.NO
            )


def guarded_kernel(kernel: KeptKernel, task: Task, homes: Sequence[Home]) -> str:
    """Return the kernel behind a guard, for these files. Raises `Complaint` if no case was measured as faster."""
    timed = kernel.judged
    faster = (
        [case.case for case in timed.latency if case.outcome is Outcome.FASTER] if timed is not None else []
    )
    if timed is None or not faster:
        raise Complaint(f"no case of {kernel.attempt} was measured as faster, so there is nothing to guard")
    if len(task.entry_points) > 1:
        raise Complaint(f"{task.id} has several entry points; write its guard by hand")
    timed_on = timed_target(timed.provenance)
    arguments = asyncio.run(_arguments(task, timed_on))
    cases = {case: arguments[case] for case in faster if case in arguments}
    return guarded(homes, kernel.source, task.entry_points[0].name, cases, timed_on.name)


async def _arguments(task: Task, timed_on: Target) -> dict[str, Arguments]:
    """Return the tensors of each case at `gpu` sizes."""
    async with DevicePool(("cpu",)) as pool:
        specs = await specify_cases(pool, resolve_task(task, timed_on.name, on_gpu=False), timed_on.name)
    return {
        spec.case: {
            argument.name: (argument.shape, argument.dtype)
            for argument in spec.arguments
            if argument.shape is not None
        }
        for spec in CASE_SPECS.decode(specs)
    }
