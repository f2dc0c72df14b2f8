"""Writes results in a public benchmark's own format. A result or figure that is not known is absent or `null`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean

import msgspec

from engine.predictions.results import PredictionResult
from harness import Latency
from sessions.files import write_whole
from suites.private_folder import make_private_folder
from suites.public.task import SuiteKind

Files = dict[str, object]
"""JSON documents by file name."""
Row = dict[str, object]
UNKNOWN_DIFFICULTY = -1
"""GEAK-eval's own value."""
_KERNELBENCH_TASK = re.compile(r"level(\d+)_(\d+)")


def write_results(
    kind: SuiteKind, results: Sequence[PredictionResult], folder: Path, *, name: str
) -> list[Path]:
    """Write the results into a folder and return the files; none for a suite without a format of its own."""
    format_of = _FORMATS.get(kind)
    judged = [result for result in results if result.counted]
    if format_of is None or not judged:
        return []
    paths = []
    for file, document in format_of(judged, name).items():
        path = folder / file
        make_private_folder(path.parent)
        write_whole(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
        paths.append(path)
    return paths


def _geak_eval(results: Sequence[PredictionResult], name: str) -> Files:
    """`NAME_results_0.json` for the first prediction of each task, `_1` for the second, ..., and all together."""
    passes = {
        number: [_geak_eval_row(result) for result in sample_results]
        for number, sample_results in _by_sample(results)
    }
    files: Files = {f"{name}_results_{number - 1}.json": rows for number, rows in passes.items()}
    return files | {f"{name}_all_passes.json": [row for rows in passes.values() for row in rows]}


def _geak_eval_row(result: PredictionResult) -> Row:
    return {
        "pass_num": result.sample - 1,
        "file_name": result.file,
        "call_status": int(result.call),
        "exec_status": int(result.execution),
        "speedup": result.speedup,
        "stdout": result.printed,
        "stderr": result.why,
        "difficulty": UNKNOWN_DIFFICULTY if result.difficulty is None else result.difficulty,
    }


def _tritonbench(results: Sequence[PredictionResult], name: str) -> Files:
    """Lists of the files that run and that are correct, and a list of timed inputs for each task."""
    files: Files = {}
    for number, sample_results in _by_sample(results):
        mark = _mark(number)
        files[f"{name}_call_acc{mark}.json"] = [result.file for result in sample_results if result.call]
        files[f"{name}_exe_acc{mark}.json"] = [result.file for result in sample_results if result.execution]
        for result in sample_results:
            rows = [_tritonbench_row(latency) for latency in _latencies(result)]
            if rows:
                files[f"{name}_perf{mark}/{result.file.removesuffix('.py')}.json"] = rows
    return files


def _tritonbench_row(latency: Latency) -> Row:
    row = _timed_row(latency)
    if latency.efficiency is not None and latency.efficiency.bytes:
        row["GB/s"] = latency.efficiency.bytes_per_s / 1e9
    if latency.efficiency is not None and latency.efficiency.flops:
        row["TFLOPS"] = latency.efficiency.flops_per_s / 1e12
    return row


def _kernelbench_x(results: Sequence[PredictionResult], name: str) -> Files:
    """`metrics.json` by task, and `summary.json`."""
    files: Files = {}
    for number, sample_results in _by_sample(results):
        metrics = {result.file: _metrics(result) for result in sample_results}
        files[f"metrics{_mark(number)}.json"] = metrics
        files[f"summary{_mark(number)}.json"] = _summary(name, list(metrics.values()))
    return files


def _metrics(result: PredictionResult) -> Row:
    latencies = _latencies(result)
    return {
        "file": result.file,
        "call_ok": result.call,
        "exe_ok": result.execution,
        "perf_ok": bool(latencies),
        "dtype": None,
        "runtime_ms": sum(latency.candidate_ms for latency in latencies) if latencies else None,
        "gbs": None,
        "tflops": None,
        "speedup": result.speedup,
        "maintainability": None,
        "code_quality": {},
        "performance": [_timed_row(latency) for latency in latencies],
        "error": result.why,
        "code": result.source,
    }


def _summary(name: str, metrics: Sequence[Row]) -> Row:
    total = len(metrics)
    summary: Row = {"method": name, "total": total}
    for stage in ("call", "exe", "perf"):
        passed = sum(bool(row[f"{stage}_ok"]) for row in metrics)
        timed = stage != "perf" or passed > 0
        summary[f"{stage}_pass"] = passed if timed else None
        summary[f"{stage}_rate"] = round(passed / total * 100, 1) if timed else None
    speedups = [speedup for row in metrics if isinstance(speedup := row["speedup"], float)]
    return summary | {"avg_speedup_per_task": round(fmean(speedups), 3) if speedups else None}


def _kernelbench(results: Sequence[PredictionResult], _name: str) -> Files:
    """`eval_results.json` for each level."""
    levels: dict[str, dict[int, list[Row]]] = {}
    for result in results:
        match = _KERNELBENCH_TASK.fullmatch(result.task.partition("/")[2])
        if match:
            problems = levels.setdefault(match[1], {})
            problems.setdefault(int(match[2]), []).append(_kernelbench_row(result))
    return {
        f"level{level}/eval_results.json": {str(problem): rows for problem, rows in sorted(problems.items())}
        for level, problems in sorted(levels.items())
    }


def _kernelbench_row(result: PredictionResult) -> Row:
    latencies = _latencies(result)
    metadata = {"error": result.why, "error_name": result.kind} if result.why else {}
    return {
        "sample_id": result.sample - 1,
        "compiled": result.call,
        "correctness": result.execution,
        "metadata": metadata | {"device": result.device},
        "runtime": latencies[0].candidate_ms if len(latencies) == 1 else None,
        "runtime_stats": {},
    }


def _by_sample(results: Sequence[PredictionResult]) -> Iterator[tuple[int, list[PredictionResult]]]:
    """Yield the number of each sample, from 1, with its results in their order."""
    in_order = sorted(results, key=lambda result: result.sample)
    for number, group in groupby(in_order, key=lambda result: result.sample):
        yield number, list(group)


def _mark(sample: int) -> str:
    """Returns the part of a file's name for the second and each later sample of a task."""
    return "" if sample == 1 else f"_{sample}"


def _latencies(result: PredictionResult) -> Sequence[Latency]:
    """Returns the timed cases of a correct candidate: calls of the task's test, and one with inputs for timing."""
    return result.evaluation.latency if result.evaluation is not None and result.execution else ()


def _timed_row(latency: Latency) -> Row:
    return {"input_size": latency.case, "ms": latency.candidate_ms}


_FORMATS: Mapping[SuiteKind, Callable[[Sequence[PredictionResult], str], Files]] = {
    SuiteKind.TRITONBENCH_REVISED: _geak_eval,
    SuiteKind.ROCM: _geak_eval,
    SuiteKind.TRITONBENCH_G: _tritonbench,
    SuiteKind.TRITONBENCH_T: _tritonbench,
    SuiteKind.KERNELBENCH_X: _kernelbench_x,
    SuiteKind.KERNELBENCH: _kernelbench,
}
