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


def correct(*, speedup: float | None = None, requested_bytes: int = 2000) -> Evaluation:
    """Return the evaluation of a correct candidate; timed if `speedup` is given."""
    traffic = Traffic(
        case="small",
        sizes={"n": 100},
        requested_read_bytes=requested_bytes // 2,
        requested_write_bytes=requested_bytes - requested_bytes // 2,
        unique_read_bytes=500,
        unique_write_bytes=500,
        minimal_bytes=1000,
        dot_flops=0,
        flops=100,
        launches=1,
        programs=1,
    )
    return Evaluation(
        schema=1,
        task="starter/vector_add",
        device="cpu",
        verdict=Verdict.CORRECT,
        call=True,
        execution=True,
        stages=tuple(Stage(name, None if name == "performance" else True, 0.1) for name in STAGES),
        latency=one_case(speedup),
        speedup=speedup,
        speedup_geomean=speedup,
        traffic=(traffic,),
    )


def failed(verdict: Verdict = Verdict.WRONG, message: str = "output 0 is wrong at [3]") -> Evaluation:
    """Return the evaluation of a failed candidate with this verdict and message."""
    failing_index = STAGES.index(FAILING_STAGE[verdict])
    stages = tuple(
        Stage(
            name,
            True if index < failing_index else False if index == failing_index else None,
            0.1 if index <= failing_index else 0.0,
        )
        for index, name in enumerate(STAGES)
    )
    return Evaluation(
        schema=1,
        task="starter/vector_add",
        device="cpu",
        verdict=verdict,
        call=failing_index > 1,
        execution=False,
        stages=stages,
        error=ErrorReport(kind=str(verdict), message=message),
    )
