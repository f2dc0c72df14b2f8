"""Ready-made evaluations for tests that run no judge."""

from __future__ import annotations

from harness import STAGES, ErrorReport, Evaluation, Latency, Outcome, Stage, Traffic, Verdict

FAILING_STAGE = {
    Verdict.REJECTED: "static",
    Verdict.NO_CODE: "static",
    Verdict.CALL_ERROR: "call",
    Verdict.TIMEOUT: "call",
    Verdict.CRASH: "call",
    Verdict.COMPILE_ERROR: "compile",
    Verdict.WRONG: "execution",
    Verdict.UNSUPPORTED: "execution",
    Verdict.INFRA_ERROR: "call",
}


def one_case(speedup: float | None) -> tuple[Latency, ...]:
    """Return the latency of one case with this speedup and without an interval; empty without a speedup."""
    if speedup is None:
        return ()
    outcome = Outcome.FASTER if speedup > 1 else Outcome.NOT_RESOLVED
    return (Latency("0", "small", 0.1 * speedup, 0.1, speedup, None, "tape", outcome, against="triton"),)


def stages(passed: int, *, failed: bool = False, seconds: float = 0.1) -> tuple[Stage, ...]:
    """Return six stages: `passed` stages passed; the next failed, or was not reached."""
    outcomes = [True] * passed + [False if failed else None] + [None] * len(STAGES)
    return tuple(Stage(name, ok, seconds) for name, ok in zip(STAGES, outcomes, strict=False))


def judged(
    verdict: Verdict = Verdict.CORRECT, passed: int = 5, *, task: str = "starter/softmax", **fields: object
) -> Evaluation:
    """Return an evaluation on CPU that ends after `passed` stages."""
    right = verdict is Verdict.CORRECT
    usual = {
        "schema": 1,
        "task": task,
        "device": "cpu",
        "verdict": verdict,
        "call": passed > 1,
        "execution": right,
        "stages": stages(passed, failed=not right),
    }
    return Evaluation(**(usual | fields))


def traffic(
    case: str, read: int, write: int, *, unique: int | None = None, minimal: int = 0, **fields: object
) -> Traffic:
    """Return the bytes of a case; `unique`: distinct bytes on each side, by default as requested."""
    usual = {
        "sizes": {"n": 1024},
        "unique_read_bytes": read if unique is None else unique,
        "unique_write_bytes": write if unique is None else unique,
        "dot_flops": 0,
        "flops": 0,
        "launches": 1,
        "programs": 1,
    }
    requested = {"requested_read_bytes": read, "requested_write_bytes": write, "minimal_bytes": minimal}
    return Traffic(case=case, **(requested | usual | fields))


def correct(*, speedup: float | None = None, requested_bytes: int = 2000) -> Evaluation:
    """Return the evaluation of a correct candidate; timed if `speedup` is given."""
    read = requested_bytes // 2
    return judged(
        task="starter/vector_add",
        latency=one_case(speedup),
        speedup=speedup,
        speedup_geomean=speedup,
        traffic=(traffic("small", read, requested_bytes - read, unique=500, minimal=1000, flops=100),),
    )


def failed(verdict: Verdict = Verdict.WRONG, message: str = "output 0 is wrong at [3]") -> Evaluation:
    """Return the evaluation of a failed candidate with this verdict and message."""
    return judged(
        verdict,
        STAGES.index(FAILING_STAGE[verdict]),
        task="starter/vector_add",
        error=ErrorReport(kind=str(verdict), message=message),
    )
