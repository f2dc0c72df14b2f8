"""The engine's side of sampling: what a correct candidate asks of memory at `gpu` sizes, and what follows for its speed."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Sequence

import msgspec

from harness.hardware.product import Product
from harness.processes.pool import DevicePool
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import WorkerDied
from harness.wire.evaluation import ErrorReport, Estimate, Finding, SampledTraffic, Traffic, line_in
from harness.wire.guest_messages import CaseTraffic
from harness.wire.sample_messages import SAMPLE_REPORTS, CaseSampled, Sample
from suites.costs import task_cost
from suites.task import Case, Task

from .roofline import estimate

SAMPLE_S = 60.0
"""Of all cases of a candidate, wall time; what is not sampled by then stays so."""
TOUCHED = 0.995
"""Share of the bytes of inputs and outputs that a right kernel touches: all, but for what cost models round."""
_MAX_REPORT_BYTES = 4 << 20


class Sampler:
    """Samples one candidate on the interpreting server of a pool. That there is no sample touches no verdict."""

    def __init__(self, pool: DevicePool, task: Task, source: str, target: Target) -> None:
        self._pool = pool
        self._task = task
        self._source = source
        self._target = target

    async def sample(self, specifications: msgspec.Raw) -> tuple[CaseSampled, ...]:
        """
        The sample of each case that is specified, in order, or why there is none.

        `specifications` are the compile stage's, at `gpu` sizes.
        """
        names = [one["case"] for one in msgspec.msgpack.decode(specifications)]
        found: dict[str, CaseSampled] = {}
        why = ""
        nonce = secrets.token_hex(16)
        request = Sample(
            nonce=nonce,
            source=self._source,
            entry_point=self._task.entry_points[0].name,
            cases=specifications,
            target=self._target.name,
        )
        try:
            async with asyncio.timeout(SAMPLE_S):
                async for report in self._reports(request, names):
                    found[report.case] = report
        except TimeoutError:
            why = f"not sampled within {SAMPLE_S:g} s"
        except (EOFError, BadFrame, WorkerDied) as error:
            why = f"the sampling process ended: {error}" if str(error) else "the sampling process ended"
        return tuple(
            found.get(name, CaseSampled(nonce=nonce, case=name, seconds=0.0, why=why)) for name in names
        )

    async def _reports(self, request: Sample, names: Sequence[str]) -> AsyncIterator[CaseSampled]:
        child, channel = await self._pool.interpreting.spawn(
            "sampler", cpu_limit_s=math.ceil(SAMPLE_S), sandboxed=True
        )
        try:
            await channel.receive(_MAX_REPORT_BYTES)  # the worker's hello
            await channel.send(ENCODER.encode(request))
            for name in names:
                report = decode_message(SAMPLE_REPORTS, await channel.receive(_MAX_REPORT_BYTES))
                if report.nonce != request.nonce or report.case != name:
                    raise EOFError("its answer is none")
                yield report
        finally:
            channel.close()
            child.end()


_COUNTS = tuple(name for name in CaseTraffic.__struct_fields__ if name in Traffic.__struct_fields__)


def counted(task: Task, cases: Sequence[Case], rows: Sequence[CaseTraffic]) -> tuple[Traffic, ...]:
    """Exact counts at `cpu` sizes beside the cost model."""
    by_name = {case.name: case for case in cases}
    found = []
    for one in rows:
        case = by_name[one.case]
        cost = task_cost(task, case.cpu, case.dtype)
        found.append(
            Traffic(
                sizes=case.cpu,
                minimal_bytes=cost.minimal_bytes,
                flops=cost.flops,
                **{name: getattr(one, name) for name in _COUNTS},
            )
        )
    return tuple(found)


def extrapolated(
    task: Task, cases: Sequence[Case], target: Target, reports: Sequence[CaseSampled]
) -> tuple[tuple[SampledTraffic, ...], dict[str, str]]:
    """Samples beside the cost model at `gpu` sizes; and by case why there is none."""
    by_name = {case.name: case for case in cases}
    found, lacking = [], {}
    for report in reports:
        if report.flow is None:
            lacking[report.case] = report.why
            continue
        case = by_name[report.case]
        cost = task_cost(task, case.gpu, case.dtype)
        found.append(
            SampledTraffic(
                case=case.name,
                sizes=case.gpu,
                target=target.name,
                minimal_bytes=cost.minimal_bytes,
                flops=cost.flops,
                out_of_bounds=report.out_of_bounds,
                remarks=report.remarks,
                moved_bytes=report.moved_bytes,
                **msgspec.structs.asdict(report.flow),
            )
        )
    return tuple(found), lacking


def missed(sampled: Sequence[SampledTraffic]) -> tuple[ErrorReport | None, list[Finding]]:
    """Accesses outside their tensor that only `gpu` sizes show: the first store as an error, loads as findings.

    They are certain: none is among them whose address depends on loaded values.
    """
    error: ErrorReport | None = None
    findings = []
    for sample in sampled:
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


def untouched(sampled: Sequence[SampledTraffic]) -> list[Finding]:
    """
    Cases at `gpu` sizes whose kernels touch fewer distinct bytes than inputs and outputs hold; copies that the host made for kernels
    to work on in place count as touched.

    Only where the bound holds: no address depends on loaded values, and every program was sampled, or all that were ask for
    equally much.
    """
    findings = []
    for sample in sampled:
        alike = sample.requested_low_bytes == sample.requested_high_bytes or sample.sampled == sample.programs
        touched_bytes = sample.unique_high_bytes + sample.moved_bytes
        if alike and not sample.remarks and touched_bytes < TOUCHED * sample.minimal_bytes:
            message = (
                f"at its gpu sizes kernels touch at most {sample.unique_high_bytes:,} distinct bytes, "
                f"inputs and outputs hold {sample.minimal_bytes:,}"
            )
            findings.append(Finding(kind="gpu_sizes", message=message, case=sample.case))
    return findings


def estimates(
    task: Task,
    cases: Sequence[Case],
    targets: Sequence[Target],
    traffic: Sequence[Traffic],
    sampled: Sequence[SampledTraffic],
    product: Product | None = None,
) -> tuple[Estimate, ...]:
    """Of each case and target: at `gpu` sizes where the case was sampled, else at the sizes that were counted. `product` is the
    device's, where that is known.
    """
    by_name = {case.name: case for case in cases}
    at_gpu_sizes = {one.case: one for one in sampled}
    found = []
    for one in traffic:
        basis = at_gpu_sizes.get(one.case, one)
        case = by_name[one.case]
        cost = task_cost(task, basis.sizes, case.dtype)
        bounds = (estimate(basis, cost, case.dtype, target, product) for target in targets)
        found += [bound for bound in bounds if bound is not None]
    return tuple(found)
