"""TritonBench's results: lists of the files that run and that are correct, and a list of timed inputs for each task."""

from __future__ import annotations

from collections.abc import Sequence

from engine.predictions.results import PredictionResult


def files_of(results: Sequence[PredictionResult], name: str) -> dict[str, object]:
    """Return the documents by file name. From the second sample of a task on, the name has the sample's number."""
    files: dict[str, object] = {}
    for sample in sorted({result.sample for result in results}):
        sample_results = [result for result in results if result.sample == sample]
        mark = "" if sample == 1 else f"_{sample}"
        files[f"{name}_call_acc{mark}.json"] = [result.file for result in sample_results if result.call]
        files[f"{name}_exe_acc{mark}.json"] = [result.file for result in sample_results if result.execution]
        for result in sample_results:
            rows = _rows(result)
            if rows:
                files[f"{name}_perf{mark}/{result.file.removesuffix('.py')}.json"] = rows
    return files


def _rows(result: PredictionResult) -> list[dict[str, object]]:
    """Return the timed cases of a correct candidate: calls of the task's test, and one with inputs for timing."""
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
