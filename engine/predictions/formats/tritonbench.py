"""TritonBench's results: the files that run, the files that are correct, and a list of timed inputs for each task."""

from __future__ import annotations

from collections.abc import Sequence

from engine.predictions.results import PredictionResult


def files_of(results: Sequence[PredictionResult], name: str) -> dict[str, object]:
    """Return the documents by file name; predictions after a task's first have a number in the name."""
    files: dict[str, object] = {}
    for sample in sorted({result.sample for result in results}):
        own = [result for result in results if result.sample == sample]
        mark = "" if sample == 1 else f"_{sample}"
        files[f"{name}_call_acc{mark}.json"] = [result.file for result in own if result.call]
        files[f"{name}_exe_acc{mark}.json"] = [result.file for result in own if result.execution]
        for result in own:
            rows = _rows(result)
            if rows:
                files[f"{name}_perf{mark}/{result.file.removesuffix('.py')}.json"] = rows
    return files


def _rows(result: PredictionResult) -> list[dict[str, object]]:
    """Timed cases of a correct candidate; the inputs are those of the task's test."""
    if result.evaluation is None or not result.execution:
        return []
    rows = []
    for latency in result.evaluation.latency:
        row: dict[str, object] = {"input_size": latency.case, "ms": latency.candidate_ms}
        if latency.efficiency is not None:
            row["GB/s"] = latency.efficiency.bytes_per_s / 1e9
            row["TFLOPS"] = latency.efficiency.flops_per_s / 1e12
        rows.append(row)
    return rows
