"""What the interpreter's counts, and samples at `gpu` sizes, say of a candidate, beside the cost model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from harness.hardware.product import Product
from harness.wire.device import Target
from harness.wire.evaluation import ErrorReport, Finding, SampledTraffic
from harness.wire.findings import strict_error
from harness.wire.guest_messages import CaseTraffic
from suites.task import Case, Task

from .sampling_stage import Sampler, counted, estimates, extrapolated, missed, untouched


class Sampled(NamedTuple):
    """Counts, samples and estimates of both."""

    facts: dict[str, Any]
    """Fields of the Evaluation, by name."""
    findings: list[Finding]
    wrong: ErrorReport | None
    """A store beyond its tensor at `gpu` sizes, or a finding that the task is strict about."""


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
    findings: list[Finding] = []
    samples: tuple[SampledTraffic, ...] = ()
    lacking: dict[str, str] = {}
    wrong = None
    if sampler is not None:
        reports = await sampler.sample(specifications)
        samples, lacking = await asyncio.to_thread(extrapolated, task, cases, targets[0], reports)
        wrong, findings = missed(samples)
        if not task.in_place:  # the cost model counts what is read and written twice
            findings += untouched(samples)
        wrong = wrong or strict_error(findings, task.strict)
    estimate = await asyncio.to_thread(estimates, task, cases, targets, traffic, samples, product)
    facts = {"traffic": traffic, "sampled": samples, "not_sampled": lacking, "estimate": estimate}
    return Sampled(facts, findings, wrong)
