"""Results in the benchmarks' own files, byte for byte. The folder `result_files` has what the benchmarks' own tools read.

After a change: `python -m tests.engine.predictions.test_result_files`, then read the files back with each benchmark's tools
(docs/suites.md).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from engine.predictions.formats import write_results
from engine.predictions.results import WAVEDECK, PredictionResult
from harness import Evaluation, Latency, Verdict
from harness.wire.results.latency import Efficiency, TimingMethod
from harness.wire.results.provenance import Provenance
from suites.public.task import SuiteKind
from tests.support.judge.evaluations import correct, failed

GOLDEN = Path(__file__).parent / "result_files"
NAMES = {
    SuiteKind.TRITONBENCH_REVISED: "{name}.py",
    SuiteKind.ROCM: "{name}.py",
    SuiteKind.TRITONBENCH_G: "{name}.py",
    SuiteKind.KERNELBENCH_X: "Math/{name}.py",
    SuiteKind.KERNELBENCH: "level1/{number}_{name}.py",
    SuiteKind.AGENTKERNELARENA: "triton2triton/vllm/triton_{name}",
}
"""Name of a task in the benchmark's own files."""


def timed(*times: tuple[float, float]) -> Evaluation:
    """Return a correct evaluation with these times of baseline and candidate, in milliseconds."""
    latencies = tuple(
        Latency(
            "0", f"call-{number}", before, after, before / after, None, "tape", method=TimingMethod.GRAPH,
            efficiency=Efficiency("MI300X", 1 << 20, 1 << 21, "fp32", 1e9, 1e9, 0.25 * number, 0.125),
        )
        for number, (before, after) in enumerate(times, 1)
    )  # fmt: skip
    ratios = [before / after for before, after in times]
    return msgspec.structs.replace(
        correct(), latency=latencies, speedup=sum(ratios) / len(ratios), provenance=Provenance("MI300X")
    )


def results(kind: SuiteKind) -> Iterator[PredictionResult]:
    """Yield a small session: timed twice, not timed, wrong and then right, does not compile, cannot be judged here."""
    session = (
        ("fast", 1, timed((0.25, 0.125), (0.75, 0.5))),
        ("fast", 2, timed((0.25, 0.5), (0.75, 0.5))),
        ("plain", 1, correct()),
        ("wrong", 1, failed(Verdict.WRONG, "output 0 differs: 2 \u2260 3")),
        ("wrong", 2, correct()),
        ("broken", 1, failed(Verdict.CALL_ERROR, "'(' was never closed")),
        ("spills", 1, failed(Verdict.COMPILE_ERROR, "gfx942: out of registers")),
        ("other", 1, failed(Verdict.UNSUPPORTED, "needs a GPU")),
    )
    numbers = {
        name: number for number, name in enumerate(("fast", "plain", "wrong", "broken", "spills", "other"), 9)
    }
    for name, sample, judged in session:
        evaluation = msgspec.structs.replace(judged, device="0")
        number = numbers[name]
        yield PredictionResult(
            task=f"mine/level1_{number}" if kind is SuiteKind.KERNELBENCH else f"mine/{name}",
            file=NAMES[kind].format(name=name, number=number),
            sample=sample,
            protocol=WAVEDECK,
            device=evaluation.device,
            verdict=evaluation.verdict.value,
            call=evaluation.call,
            execution=evaluation.verdict is Verdict.CORRECT,
            kind=evaluation.error.kind if evaluation.error else "",
            why=evaluation.error.first_line if evaluation.error else "",
            difficulty=2,
            source=f"# {name}\n",
            evaluation=evaluation,
        )


def write(kind: SuiteKind, folder: Path) -> None:
    """Write the files of the small session."""
    write_results(kind, list(results(kind)), folder, name="mine")


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", NAMES)
def test_files_of_the_benchmark_are_written_as_its_tools_write_them(kind: SuiteKind, tmp_path: Path) -> None:
    write(kind, tmp_path)
    assert files_in(tmp_path) == files_in(GOLDEN / kind)


def test_a_suite_without_files_of_its_own_and_a_session_without_a_verdict_give_none(tmp_path: Path) -> None:
    some = list(results(SuiteKind.KERNELBENCH))
    assert write_results(SuiteKind.ROBUST_KBENCH, some, tmp_path, name="mine") == []
    assert write_results(SuiteKind.KERNELBENCH, some[-1:], tmp_path, name="mine") == []


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else GOLDEN
    shutil.rmtree(folder, ignore_errors=True)
    for suite in NAMES:
        write(suite, folder / suite)
