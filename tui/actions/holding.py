"""Checks of `wavedeck apply`: a kernel on other architectures, and the sizes at which it was faster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from harness import DevicePool, Evaluation, Outcome, Target, Verdict, evaluate
from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.stages.judged_task import resolve_task, specify_cases
from harness.wire.calls.tensors import CASE_SPECS, TensorSpec
from harness.wire.results.provenance import Provenance
from sessions.applying.guarding import Guard, Shapes, faster_condition, find_dimension
from sessions.kept_kernels import KeptKernel
from sessions.state.speed import missing_speed
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


def measured_guard(kernel: KeptKernel, task: Task, size: str) -> Guard:
    """Return the ranges of a size in which the kernel was measured as faster than the original. `Complaint` if there is none."""
    timed, started = kernel.judged, kernel.state.started if kernel.state is not None else None
    if timed is None or started is None or not timed.latency:
        reason = f" ({missing_speed(timed)})" if timed is not None else ""
        raise Complaint(f"--guard needs times, but {kernel.attempt} has none{reason}; judge it on a GPU")
    if started.against:
        raise Complaint(
            f"--guard needs times against the original; {kernel.attempt} has some against {started.against}"
        )
    if len(task.entry_points) > 1:
        raise Complaint(f"{task.id} has several entry points; write its guard by hand")
    sizes = {case.name: case.gpu.get(size) for case in task.cases}
    measured = [
        (length, latency.outcome is Outcome.FASTER)
        for latency in timed.latency
        if (length := sizes.get(latency.case)) is not None
    ]
    if not measured:
        raise Complaint(
            f"--guard {size}: {task.id} has the sizes {', '.join(task.cases[0].gpu) or 'of no name'}"
        )
    timed_on = timed_target(timed.provenance)
    shapes = asyncio.run(_shapes(task, timed_on))
    tensor, index, dimensions = find_dimension([(shapes[case], sizes[case]) for case in shapes])
    condition = faster_condition(f"{tensor}.shape[{index}]", measured)
    if not tensor:
        raise Complaint(
            f"{size} is not exactly one dimension of a tensor of {task.id}; write the guard by hand"
        )
    if not condition:
        raise Complaint(f"{kernel.attempt} is faster at no {size}, so there is nothing to guard")
    return Guard(tensor, f"{tensor}.ndim == {dimensions} and ({condition})", timed_on.name)


async def _shapes(task: Task, timed_on: Target) -> dict[str, Shapes]:
    """Return the shape of each tensor at `gpu` sizes, by case."""
    async with DevicePool(("cpu",)) as pool:
        specs = await specify_cases(pool, resolve_task(task, timed_on.name, on_gpu=False), timed_on.name)
    return {
        case: {name: value.shape for name, value in arguments.items() if isinstance(value, TensorSpec)}
        for case, arguments in CASE_SPECS.decode(specs.cases).items()
    }
