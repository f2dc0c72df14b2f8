"""Traffic of a correct candidate: counts at `cpu` sizes, samples at `gpu` sizes, and findings and estimates from both.

A sampling worker runs the candidate; this module, in the parent, checks its reports and adds the cost model.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

import msgspec

from harness.hardware.product import Product
from harness.processes.conversation import Conversation
from harness.processes.pool import DevicePool
from harness.wire.channels.channel import BadFrame
from harness.wire.device import Target
from harness.wire.errors import WorkerDied
from harness.wire.findings import strict_error
from harness.wire.messages.guest import Broken, CaseTraffic
from harness.wire.messages.sampler import CaseSampled, SampleCases
from harness.wire.results.evaluation import ErrorReport, Estimate, Finding, SampledTraffic, Traffic, line_in
from suites.costs import task_cost
from suites.task import Case, Task

from .roofline import estimate

SAMPLE_S = 60.0
"""Wall time for all cases of a candidate; later cases stay without a sample."""
TOUCHED = 0.995
"""Share of the bytes of inputs and outputs that a right kernel touches; cost models round the rest."""
_COUNTS = tuple(name for name in CaseTraffic.__struct_fields__ if name in Traffic.__struct_fields__)


class Estimates(msgspec.Struct, frozen=True):
    """Counts, samples, and what follows from them; the first four are fields of `Evaluation`."""

    traffic: tuple[Traffic, ...] = ()
    sampled: tuple[SampledTraffic, ...] = ()
    not_sampled: dict[str, str] = {}
    estimate: tuple[Estimate, ...] = ()
    findings: tuple[Finding, ...] = ()
    error: ErrorReport | None = None
    """A store outside its tensor at `gpu` sizes, or a finding that the task is strict about."""


async def sample_cases(
    pool: DevicePool, task: Task, source: str, target: Target, specifications: msgspec.Raw
) -> tuple[CaseSampled, ...]:
    """
    The sample of each specified case, in order, or why there is none. A missing sample never changes a verdict.

    `specifications` are the compile stage's, at `gpu` sizes.
    """
    names = [case["case"] for case in msgspec.msgpack.decode(specifications)]
    samples: dict[str, CaseSampled] = {}
    why = ""
    request = SampleCases(
        source=source,
        entry_point=task.entry_points[0].name,
        cases=specifications,
        target=target.name,
    )
    try:
        async with asyncio.timeout(SAMPLE_S):
            async for report in _receive_samples(pool, task, request, names):
                samples[report.case] = report
    except TimeoutError:
        why = f"not sampled within {SAMPLE_S:g} s"
    except (EOFError, BadFrame, WorkerDied) as error:
        why = f"the sampling process ended: {error}" if str(error) else "the sampling process ended"
    return tuple(samples.get(name, CaseSampled(case=name, seconds=0.0, why=why)) for name in names)


async def _receive_samples(
    pool: DevicePool, task: Task, request: SampleCases, names: Sequence[str]
) -> AsyncIterator[CaseSampled]:
    child, channel = await pool.interpreting.spawn(
        "sampler", cpu_limit_s=math.ceil(SAMPLE_S), sandboxed=True, package=task.package_view
    )
    try:
        conversation = Conversation(channel)
        await conversation.sandbox()
        await conversation.send(request)
        for name in names:
            match await conversation.answer():
                case CaseSampled(case=case) as sampled if case == name:
                    yield sampled
                case Broken():
                    raise EOFError
                case _:
                    raise BadFrame("its answer does not belong to the request")
    finally:
        channel.close()
        child.end()


def estimate_candidate(
    task: Task,
    cases: Sequence[Case],
    targets: Sequence[Target],
    counts: Sequence[CaseTraffic],
    reports: Sequence[CaseSampled],
    product: Product | None,
) -> Estimates:
    """Traffic and estimates of a candidate, from the interpreter's `counts` and the `reports` of samples, if there are any."""
    traffic = _add_costs(task, cases, counts)
    samples, not_sampled = extrapolate(task, cases, targets[0], reports)
    error, findings = _find_missed_accesses(samples)
    # The cost model counts memory twice that is read and written, and estimates it for a task of calls.
    if not task.in_place and task.script is None:
        findings += _find_untouched_bytes(samples)
    bases: dict[str, Traffic | SampledTraffic] = {row.case: row for row in traffic}
    bases |= {row.case: row for row in samples}
    return Estimates(
        traffic=traffic,
        sampled=samples,
        not_sampled=not_sampled,
        estimate=estimate_cases(task, cases, targets, [bases[row.case] for row in traffic], product),
        findings=tuple(findings),
        error=error or strict_error(findings, task.strict),
    )


def extrapolate(
    task: Task, cases: Sequence[Case], target: Target, reports: Sequence[CaseSampled]
) -> tuple[tuple[SampledTraffic, ...], dict[str, str]]:
    """Samples with the cost model's figures at `gpu` sizes; and by case why there is no sample."""
    by_name = {case.name: case for case in cases}
    samples, why_not = [], {}
    for report in reports:
        if report.flow is None:
            why_not[report.case] = report.why
            continue
        case = by_name[report.case]
        cost = task_cost(task, case.gpu, case.dtype)
        samples.append(
            SampledTraffic(
                case=case.name,
                sizes=case.gpu,
                target=target.name,
                minimal_bytes=cost.moved_bytes,
                flops=cost.flops,
                out_of_bounds=report.out_of_bounds,
                remarks=report.remarks,
                moved_bytes=report.moved_bytes,
                **msgspec.structs.asdict(report.flow),
            )
        )
    return tuple(samples), why_not


def estimate_cases(
    task: Task,
    cases: Sequence[Case],
    targets: Sequence[Target],
    traffic: Sequence[Traffic | SampledTraffic],
    product: Product | None = None,
) -> tuple[Estimate, ...]:
    """The roofline of each case and target, at the sizes of the traffic. `product` is the device's, where it is known."""
    dtypes = {case.name: case.dtype for case in cases}
    estimates = []
    for row in traffic:
        cost = task_cost(task, row.sizes, dtypes[row.case])
        bounds = (estimate(row, cost, dtypes[row.case], target, product) for target in targets)
        estimates += [bound for bound in bounds if bound is not None]
    return tuple(estimates)


def _add_costs(task: Task, cases: Sequence[Case], counts: Sequence[CaseTraffic]) -> tuple[Traffic, ...]:
    by_name = {case.name: case for case in cases}
    traffic = []
    for row in counts:
        case = by_name[row.case]
        cost = task_cost(task, case.cpu, case.dtype)
        counted = {name: getattr(row, name) for name in _COUNTS}
        traffic.append(Traffic(sizes=case.cpu, minimal_bytes=cost.moved_bytes, flops=cost.flops, **counted))
    return tuple(traffic)


def _find_missed_accesses(samples: Sequence[SampledTraffic]) -> tuple[ErrorReport | None, list[Finding]]:
    """Accesses outside their tensor that only `gpu` sizes show: the first store as an error, loads as findings.

    Each is certain: accesses at addresses that depend on loaded values are not among them.
    """
    error: ErrorReport | None = None
    findings = []
    for sample in samples:
        for access in sample.out_of_bounds:
            message = f"at its gpu sizes: {access}"
            if ": load " in access:
                findings.append(
                    Finding(kind="out_of_bounds", message=message, case=sample.case, line=line_in(access))
                )
            elif error is None:
                error = ErrorReport(
                    kind="out_of_bounds", message=f"case {sample.case} {message}", line=line_in(access)
                )
    return error, findings


def _find_untouched_bytes(samples: Sequence[SampledTraffic]) -> list[Finding]:
    """
    Findings on cases at `gpu` sizes where kernels touch fewer distinct bytes than inputs and outputs hold.

    Copies that the host made for kernels to work on in place count as touched. A case counts only if its bound holds: no
    address depends on loaded values, and all programs were sampled or all sampled programs ask for equally many bytes.
    """
    findings = []
    for sample in samples:
        alike = sample.requested_low_bytes == sample.requested_high_bytes or sample.sampled == sample.programs
        touched_bytes = sample.unique_high_bytes + sample.moved_bytes
        if alike and not sample.remarks and touched_bytes < TOUCHED * sample.minimal_bytes:
            message = (
                f"at its gpu sizes kernels touch at most {sample.unique_high_bytes:,} distinct bytes, "
                f"inputs and outputs hold {sample.minimal_bytes:,}"
            )
            findings.append(Finding(kind="gpu_sizes", message=message, case=sample.case))
    return findings
