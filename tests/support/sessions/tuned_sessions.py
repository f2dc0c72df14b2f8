"""A session of `tune` with times: the first attempt is best at M=16, the second at M=64, the third at M=1024."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness import Evaluation, Latency
from harness.wire.results.provenance import Provenance
from sessions import events as ev
from tests.support.sessions import story
from tests.support.sessions.journals import EventLog, correct
from tests.support.sessions.measured_sessions import latency

SESSION = "20260102-030405-tune-aaaa"
CONFIG = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "num_warps": 4}
KERNEL = """\
import triton
import triton.language as tl

CONFIG = {config}


@triton.jit
def gemm_kernel(
    a, b, c, M, N, K,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
):
    tl.dot(a, b)


def gemm(a, b):
    c = a.new_empty((a.shape[0], b.shape[0]))
    grid = (triton.cdiv(a.shape[0], CONFIG["BLOCK_SIZE_M"]),)
    gemm_kernel[grid](a, b, c, *a.shape, b.shape[0], **CONFIG)
    return c
"""
CASES = (16, 64, 1024)
US = ((20.0, 20.0), (30.0, 30.0), (90.0, 90.0)), ((20.0, 22.0), (30.0, 20.0), (90.0, 80.0)), ((20.0, 19.9), (30.0, 31.0), (90.0, 60.0))  # fmt: skip
"""Baseline and attempt at each case, by attempt."""


TASK_TOML = """\
schema = 1
name = "gemm"
title = "GEMM"
instruction = "Multiply."
category = "MatrixMultiply"
difficulty = 2

[[entry_points]]
name = "gemm"
signature = "gemm(a, b)"

[[outputs]]
name = "c"

[tolerances]
bfloat16 = { rtol = 0.02, atol = 0.02 }

"""


def kernel(**changes: int) -> str:
    """Return the kernel with a changed configuration."""
    return KERNEL.format(config=CONFIG | changes)


SOURCES = kernel(), kernel(BLOCK_SIZE_M=32), kernel(BLOCK_SIZE_M=128, num_warps=8)


def tuned_events(*, task: str = "starter/matmul", is_timed: bool = True) -> list[ev.AnyEvent]:
    """Return a finished session of three correct attempts."""
    provenance = Provenance(product="MI300X", torch="2.10.0", triton="3.6.0")
    log = EventLog()
    log.add(
        story.started(
            SESSION, method="tune", model="none", tasks=(task,), devices=("2",), versions={}, templates={}
        )
    )
    log.add(ev.EngineStarted(host="node", pid=1))
    log.add(ev.InstanceStarted(task=task, instance=1))
    for number, (source, times) in enumerate(zip(SOURCES, US, strict=True), start=1):
        attempt = f"{task.removeprefix('starter/')}#1/{number}"
        latencies = tuple(latency(f"M{size}", *us) for size, us in zip(CASES, times, strict=True))
        log.add(ev.AttemptStarted(attempt=attempt, origin=ev.Origin.TUNE, base=None))
        log.add(ev.CandidateProposed(attempt=attempt, source=source, strategy="BLOCK_SIZE_M"))
        log.add(
            ev.AttemptJudged(
                attempt=attempt, evaluation=_timed(task, latencies if is_timed else (), provenance)
            )
        )
    return log.events


def _timed(task: str, latencies: tuple[Latency, ...], provenance: Provenance) -> Evaluation:
    return msgspec.structs.replace(correct(task=task), latency=latencies, provenance=provenance)


def write_gemm_task(folder: Path) -> None:
    """Write the task of the kernel, with a case for each size M at N=512 and K=4096."""
    folder.mkdir(parents=True)
    cases = "".join(
        f'[[cases]]\nname = "M{size}"\ndtype = "bfloat16"\ncpu = {{ M = {size}, N = 8, K = 16 }}\n'
        f"gpu = {{ M = {size}, N = 512, K = 4096 }}\n"
        for size in CASES
    )
    (folder / "task.toml").write_text(TASK_TOML + cases)
    (folder / "baseline.py").write_text(SOURCES[0])
    (folder / "problem.py").write_text("")
    (folder / "cost.py").write_text(
        "from suites import Cost\n\n\ndef cost(sizes, dtype):\n    return Cost(1, 1)\n"
    )
