"""KernelBench-X's results: `metrics.json` by task, and `summary.json`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from engine.predictions.results import PredictionResult


def files_of(results: Sequence[PredictionResult], name: str) -> dict[str, object]:
    """Return the documents by file name. From the second sample of a task on, the name has the sample's number."""
    files: dict[str, object] = {}
    for sample in sorted({result.sample for result in results}):
        metrics = {result.file: _metrics(result) for result in results if result.sample == sample}
        mark = "" if sample == 1 else f"_{sample}"
        files[f"metrics{mark}.json"] = metrics
        files[f"summary{mark}.json"] = _summary(name, list(metrics.values()))
    return files


def _metrics(result: PredictionResult) -> dict[str, object]:
    latencies = result.evaluation.latency if result.evaluation is not None and result.execution else ()
    rows = [{"input_size": latency.case, "ms": latency.candidate_ms} for latency in latencies]
    return {
        "file": result.file,
        "call_ok": result.call,
        "exe_ok": result.execution,
        "perf_ok": bool(rows),
        "dtype": None,
        "runtime_ms": sum(latency.candidate_ms for latency in latencies) if rows else None,
        "gbs": None,
        "tflops": None,
        "speedup": result.speedup,
        "maintainability": None,
        "code_quality": {},
        "performance": rows,
        "error": result.why,
        "code": result.source,
    }


def _summary(name: str, metrics: Sequence[dict[str, object]]) -> dict[str, object]:
    total = len(metrics)
    summary: dict[str, object] = {"method": name, "total": total}
    for stage in ("call", "exe", "perf"):
        passed = sum(bool(row[f"{stage}_ok"]) for row in metrics)
        timed = stage != "perf" or passed > 0
        summary[f"{stage}_pass"] = passed if timed else None
        summary[f"{stage}_rate"] = round(passed / total * 100, 1) if timed else None
    speedups = [speedup for row in metrics if isinstance(speedup := row["speedup"], float)]
    summary["avg_speedup_per_task"] = round(fmean(speedups), 3) if speedups else None
    return summary
