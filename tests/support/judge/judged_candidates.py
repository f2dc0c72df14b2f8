"""Judged candidates with full evaluations, for tests of prompts."""

from __future__ import annotations

from engine.prompting.judged import JudgedCandidate
from harness import STAGES, ErrorReport, Evaluation, KernelResources, Latency, Mismatch, Outcome, Verdict
from harness.wire.results.evaluation import FullSize
from tests.support.judge.evaluations import judged, traffic
from tests.support.judge.judged_attempts import judged_attempt

SOURCE = "import triton\n\n\ndef softmax(x):\n    return x\n"


def _candidate(attempt: str, evaluation: Evaluation, fields: dict[str, str]) -> JudgedCandidate:
    source, strategy = fields.pop("source", SOURCE), fields.pop("strategy", "One row a program.")
    return JudgedCandidate(judged_attempt(evaluation, attempt, source, strategy), **fields)


def failing(
    attempt: str = "softmax#1/1",
    *,
    verdict: Verdict = Verdict.WRONG,
    stage: str = "execution",
    error: ErrorReport | None = None,
    **fields: str,
) -> JudgedCandidate:
    """Return a failed candidate."""
    report = error or ErrorReport(
        kind="exception", message="words of the judge", trace="Traceback of kernel.py", line=5
    )
    evaluation = judged(verdict, STAGES.index(stage), error=report)
    return _candidate(attempt, evaluation, fields)


def mismatch(**changes: object) -> Mismatch:
    """Return the report of a wrong output."""
    fields: dict[str, object] = {
        "case": "fp32-ragged", "output": "out", "index": (3, 780), "expected": "0.00128", "got": "0.5",
        "max_abs": 0.49, "used": 389.0, "wrong_share": 0.5, "nan_got": 0, "nan_expected": 0, "inf_got": 0,
        "inf_expected": 0, "shape": (37, 781), "expected_shape": (37, 781), "dtype": "float32",
        "expected_dtype": "float32",
    }  # fmt: skip
    return Mismatch(**(fields | changes))  # type: ignore[arg-type]


def passing(
    attempt: str = "softmax#1/2",
    *,
    spills: int = 0,
    width: int = 128,
    requested: int = 4000,
    speedup: float | None = None,
    kernels: int = 1,
    **fields: str,
) -> JudgedCandidate:
    """Return a correct candidate; timed if `speedup` is given."""
    resources = tuple(
        KernelResources(
            kernel="softmax_kernel", case="fp32", config={"BLOCK": str(1024 + number)}, autotune_index=None,
            architecture="gfx942", binary_sha256=f"{number:064x}", grid=(8192, 1, 1), vgprs=77, vgpr_spills=spills,
            sgpr_spills=0, lds_bytes=512, occupancy=6.0, occupancy_limit="vgprs", matrix_instructions=0,
            load_widths={str(width): 9},
        )
        for number in range(kernels)
    )  # fmt: skip
    timed = (
        {
            "device": "0",
            "latency": (
                Latency(
                    "0", "fp32", 0.2, 0.2 / speedup, speedup, (speedup - 0.01, speedup + 0.01), "tape",
                    Outcome.FASTER,
                ),
            ),
        }
        if speedup
        else {}
    )  # fmt: skip
    evaluation = judged(
        **timed,
        speedup=speedup,
        resources={"gfx942": resources},
        traffic=(
            traffic("fp32", requested - 1000, 1000, unique=1000, minimal=2000, flops=5000, programs=32),
        ),
        full_sizes=(FullSize("fp32", {"rows": 8192, "columns": 8192}, 536_870_912, is_long=True),),
    )  # fmt: skip
    return _candidate(attempt, evaluation, fields)
