"""Whether the code that was compiled is what the source's text compiles to, in a process in which nothing of the source runs."""

from __future__ import annotations

import asyncio
import math
import os
import random
import secrets
from collections.abc import Sequence

from harness.worker.judge.replay_findings import UNPROVEN
from harness.worker.serving.channel import BadFrame, decoded
from harness.worker.serving.messages import ENCODER, Hello
from harness.worker.serving.specializations import (
    RECOMPILE_REPORTS,
    Recompile,
    Recompiled,
    Specialization,
)

from .compilation import TargetReport
from .device import Target
from .errors import WorkerDied
from .evaluation import Basis, ErrorReport, Fact, Verdict
from .pool import DevicePool

MOST = 64
"""Codes of one source that are compiled again; of more, as many are drawn, others in each evaluation."""
MOST_WORKERS = 16
OTHER_CODE = "other_code"
_MAX_REPORT_BYTES = 1 << 20
_DRAWN = random.SystemRandom()

Refusal = tuple[Verdict, ErrorReport]


async def refusal(
    pool: DevicePool, source: str, target: Target, report: TargetReport, limit_s: float
) -> Refusal | None:
    """
    Why the code that a process made of `source` for `target` is not what its text compiles to; `None` when it is.

    `WorkerDied` when a process of ours was lost.
    """
    if report.untold:
        message = f"{report.untold}, so that no clean compiler can be asked for the same"
        return Verdict.UNSUPPORTED, ErrorReport(kind=UNPROVEN, message=message)
    asked = {one.code_sha256: one for one in report.asked}
    codes = _codes(report)
    if codes - asked.keys():
        return _other("some code was compiled that no launch asked for")
    drawn = [asked[code] for code in _DRAWN.sample(sorted(codes), min(len(codes), MOST))]
    workers = min(len(drawn), MOST_WORKERS, max(len(os.sched_getaffinity(0)) // 2, 1))
    parts = [drawn[first::workers] for first in range(workers)]
    try:
        async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_compiled(pool, source, target, report.file, part, limit_s))
                for part in parts
            ]
    except TimeoutError:
        message = f"its kernels were not compiled again, by a clean compiler, within {limit_s:g} s"
        return Verdict.UNSUPPORTED, ErrorReport(kind=UNPROVEN, message=message)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    for part, task in zip(parts, tasks, strict=True):
        made = task.result()
        for one, code, failure in zip(part, made.codes, made.failures, strict=True):
            if failure:
                return _other(f"`{one.kernel.name}` does not compile from the source's text alone: {failure}")
            if code != one.code_sha256:
                return _other(f"the code of `{one.kernel.name}` is not what a compiler makes of its text")
    return None


def fact(report: TargetReport) -> Fact:
    """What is told where there was no refusal."""
    known = len(_codes(report))
    told = f"{min(known, MOST)} of {known} are what a clean process compiles from the text"
    return Fact("compiled code", told, Basis.PROOF)


def _codes(report: TargetReport) -> set[str]:
    """Each once: a hostile process may tell of one a thousand times, for another to be drawn less."""
    return {one.code_sha256 for one in report.resources if one.code_sha256}


def _other(what: str) -> Refusal:
    message = f"{what}; leave the compiler, and the objects that it reads, as they are"
    return Verdict.REJECTED, ErrorReport(kind=OTHER_CODE, message=message)


async def _compiled(
    pool: DevicePool, source: str, target: Target, file: str, wanted: Sequence[Specialization], limit_s: float
) -> Recompiled:
    child, channel = await pool.compiling.spawn("recompiler", cpu_limit_s=math.ceil(limit_s), sandboxed=True)
    nonce = secrets.token_hex(16)
    request = Recompile(nonce=nonce, source=source, file=file, target=target.name, wanted=tuple(wanted))
    try:
        if not isinstance(decoded(RECOMPILE_REPORTS, await channel.receive(_MAX_REPORT_BYTES)), Hello):
            raise BadFrame("no greeting")
        await channel.send(ENCODER.encode(request))
        report = decoded(RECOMPILE_REPORTS, await channel.receive(_MAX_REPORT_BYTES))
        if not isinstance(report, Recompiled) or report.nonce != nonce or len(report.codes) != len(wanted):
            raise BadFrame("another answer")
        return report
    except (EOFError, BadFrame) as error:
        raise WorkerDied(f"the recompiling worker was lost ({error})") from error
    finally:
        channel.close()
        child.end()
