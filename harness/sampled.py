"""What the interpreter's counts, and samples at `gpu` sizes, say of a candidate, beside the cost model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from harness.worker.serving.messages import CaseTraffic
from suites.task import Case, Task

from .device import Target
from .evaluation import ErrorReport, SampledTraffic
from .product import Product
from .sampling import Sampler, counted, estimates, extrapolated, missed, untouched


class Sampled(NamedTuple):
    """Counts, samples and estimates of both."""

    facts: dict[str, Any]
    """Fields of the Evaluation, by name."""
    notes: list[str]
    wrong: ErrorReport | None
    """What the kernels leave out at `gpu` sizes, or touch beyond their tensors."""


async def sampled(
    sampler: Sampler | None,
    specifications: msgspec.Raw,
    counts: Sequence[CaseTraffic],
    *,
    task: Task,
    cases: tuple[Case, ...],
    targets: tuple[Target, ...],
    product: Product | None,
) -> Sampled:
    """Of a candidate that was run with these `counts`; without a `sampler` nothing is sampled."""
    traffic = await asyncio.to_thread(counted, task, cases, counts)
    notes: list[str] = []
    samples: tuple[SampledTraffic, ...] = ()
    lacking: dict[str, str] = {}
    wrong = None
    if sampler is not None:
        reports = await sampler.sample(specifications)
        samples, lacking = await asyncio.to_thread(extrapolated, task, cases, targets[0], reports)
        beyond, accesses = missed(samples)
        short, sums = untouched(samples)
        wrong = beyond or short
        notes += [*accesses, *sums]
    estimate = await asyncio.to_thread(estimates, task, cases, targets, traffic, samples, product)
    facts = {"traffic": traffic, "sampled": samples, "not_sampled": lacking, "estimate": estimate}
    return Sampled(facts, notes, wrong)
