"""What is sampled while a GPU judges, laid beside what the GPU said."""

from __future__ import annotations

from typing import Any

from harness import STAGES, Evaluation, Verdict
from harness.evaluation import SCHEMA, ErrorReport, Stage
from harness.latency import Latency, Outcome
from harness.sampled import Sampled
from tui.judgement import page

LATENCY = Latency(
    device="0", case="fp32", baseline_ms=3.0, candidate_ms=1.0, speedup=3.0, ci=(2.9, 3.1), confirmed="graph", outcome=Outcome.FASTER
)  # fmt: skip
WRONG = ErrorReport(kind="gpu_sizes", message="half of the output is touched by no program")


def on_gpu(**changes: Any) -> Evaluation:
    """A correct and fast candidate."""
    known: dict[str, Any] = {
        "verdict": Verdict.CORRECT,
        "error": None,
        "latency": (LATENCY,),
        "speedup": 3.0,
        "speedup_geomean": 3.0,
    }
    return Evaluation(
        schema=SCHEMA,
        task="starter/vector_add",
        device="0",
        call=True,
        execution=True,
        stages=tuple(Stage(name=name, ok=True, seconds=0.1) for name in STAGES),
        notes=("of the GPU",),
        **(known | changes),
    )


def test_samples_stand_beside_times() -> None:
    found = Sampled({"not_sampled": {"fp32": "too large"}}, ["of the sample", "of the GPU"], None).beside(
        on_gpu()
    )
    assert (found.verdict, found.speedup, found.latency) == (Verdict.CORRECT, 3.0, (LATENCY,))
    assert found.not_sampled == {"fp32": "too large"}
    assert found.notes == ("of the GPU", "of the sample")


def test_what_leaves_work_out_at_gpu_sizes_is_wrong_and_has_no_speedup() -> None:
    found = Sampled({}, [], WRONG).beside(on_gpu())
    assert (found.verdict, found.error, found.execution) == (Verdict.WRONG, WRONG, False)
    assert (found.latency, found.speedup, found.speedup_geomean) == ((), None, None)
    assert {stage.name: stage.ok for stage in found.stages if stage.ok is not True} == {
        "execution": False,
        "performance": None,
    }
    assert "3.00x" not in page(found)


def test_another_finding_of_the_gpu_stands() -> None:
    rejected = ErrorReport(kind="patched", message="torch was patched")
    found = Sampled({}, [], WRONG).beside(
        on_gpu(verdict=Verdict.REJECTED, error=rejected, latency=(), speedup=None)
    )
    assert (found.verdict, found.error) == (Verdict.REJECTED, rejected)
