"""Writes results in a public benchmark's own files, byte for byte as its tools do, so that these tools read them.

A speedup follows the benchmark's own definition. A time that was not measured has the tools' own mark: 0, -1.0, or `N/A`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean

import yaml  # type: ignore[import-untyped]  # has no types of its own

from engine.predictions.results import PredictionResult
from harness import Latency, Verdict
from sessions.files import write_whole
from sessions.metrics.formulas import mean_pass_at_k
from suites.privacy import make_private_folder
from suites.public.task import SuiteKind

Files = dict[str, str]
"""Texts by file name."""
Row = dict[str, object]
UNKNOWN_DIFFICULTY = -1
"""GEAK-eval's own value."""
NOT_MEASURED = -1.0
"""KernelBench's own value."""
NOT_AVAILABLE = "N/A"
"""KernelBench-X's own value."""
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
    for file, text in format_of(judged, name).items():
        path = folder / file
        make_private_folder(path.parent)
        write_whole(path, text.encode())
        paths.append(path)
    return paths


# GEAK-eval: geak_eval/run.py


def _geak_eval(results: Sequence[PredictionResult], name: str) -> Files:
    """`NAME_results_0.json` for the first prediction of each task, `_1` for the second, ..., and figures over all."""
    passes = [[_geak_eval_row(result) for result in group] for _, group in _by_sample(results)]
    files = {f"{name}_results_{number}.json": _json(rows, 4) for number, rows in enumerate(passes)}
    files[f"{name}_all_passes.json"] = _json([row for rows in passes for row in rows], 4)
    files[f"{name}passk.txt"] = _geak_eval_pass_at_k(results)
    if len(passes) > 1:
        files[f"{name}_summary.json"] = _json(
            {
                file: {
                    "call_status": sum(result.call for result in group),
                    "exec_status": sum(result.execution for result in group),
                    "difficulty": _difficulty(group[0]),
                }
                for file, group in _by_file(results)
            },
            4,
        )
    return files


def _rocm(results: Sequence[PredictionResult], name: str) -> Files:
    """The same, and `NAME_perf_0.json`, ...: `ms` is the speedup, `efficiency` the share of the device's peak in percent."""
    files = _geak_eval(results, name)
    for number, (_, group) in enumerate(_by_sample(results)):
        timed: dict[str, Row] = {}
        for result in group:
            speedup = _ratio_of_sums(result)
            shares = [latency.efficiency.best for latency in _latencies(result) if latency.efficiency]
            best = max((share for share in shares if share is not None), default=None)
            if speedup is not None:
                efficiency = None if best is None else round(best * 100, 4)
                timed[f"{_stem(result)}.json"] = {"ms": round(speedup, 4), "efficiency": efficiency}
        files[f"{name}_perf_{number}.json"] = _json(timed, 4)
    return files


def _geak_eval_row(result: PredictionResult) -> Row:
    return {
        "pass_num": result.sample - 1,
        "file_name": result.file,
        "call_status": int(result.call),
        "exec_status": int(result.execution),
        "speedup": _ratio_of_sums(result) or 0,
        "stdout": result.printed,
        "stderr": result.why,
        "difficulty": _difficulty(result),
    }


def _geak_eval_pass_at_k(results: Sequence[PredictionResult]) -> str:
    """Returns a line for each accuracy. As the tool does, it counts a sample that a task lacks as failed.

    The tool itself does not begin the sum of each k at 0; these figures do.
    """
    groups = [group for _, group in _by_file(results)]
    passes = max(len(group) for group in groups)
    lines = []
    for k in range(1, max(2, passes)):
        suffix = f" for k={k}" if passes > 1 else ""
        for label, passed in (("Call", "call"), ("Exec", "execution")):
            counts = [(passes, sum(getattr(result, passed) for result in group)) for group in groups]
            if (accuracy := mean_pass_at_k(counts, k)) is not None:
                lines.append(f"{label} Accuracy{suffix}: {100 * accuracy}\n")
    return "".join(lines)


def _difficulty(result: PredictionResult) -> int:
    return UNKNOWN_DIFFICULTY if result.difficulty is None else result.difficulty


# TritonBench: EVAL/eval_G/2_efficiency.py, performance_metrics/perf_G/performance_utils.py


def _tritonbench(results: Sequence[PredictionResult], name: str) -> Files:
    """Lists of the files that run and that are correct; for each timed task the candidate's times and the reference's."""
    files: Files = {}
    for number, group in _by_sample(results):
        mark = _mark(number)
        files[f"{name}_call_acc{mark}.json"] = _json([result.file for result in group if result.call], 4)
        files[f"{name}_exe_acc{mark}.json"] = _json([result.file for result in group if result.execution], 4)
        for result in group:
            latencies = _latencies(result)
            if latencies:
                rows = [_tritonbench_row(latency, latency.candidate_ms) for latency in latencies]
                files[f"{name}_perf{mark}/{_stem(result)}.json"] = _json(rows, 4)
                rows = [_tritonbench_row(latency, latency.baseline_ms) for latency in latencies]
                files[f"{name}_golden{mark}/{_stem(result)}.json"] = _json(rows, 4)
    return files


def _tritonbench_row(latency: Latency, ms: float) -> Row:
    """One timed input; NaN for a rate that is not known, because the tool needs a number."""
    size, flops = _work(latency)
    return {
        "input_size": latency.case,
        "ms": ms,
        "GB/s": size / ms / 1e6 if size else math.nan,
        "TFLOPS": flops / ms / 1e9 if flops else math.nan,
    }


# KernelBench: scripts/eval_from_generations.py


def _kernelbench(results: Sequence[PredictionResult], _name: str) -> Files:
    """For each level `eval_results.json`, and `baseline_time.json` with the reference's times, if there are any."""
    levels: dict[str, dict[int, list[PredictionResult]]] = {}
    for result in results:
        match = _KERNELBENCH_TASK.fullmatch(result.task.partition("/")[2])
        if match:
            levels.setdefault(match[1], {}).setdefault(int(match[2]), []).append(result)
    files = {}
    for level, problems in sorted(levels.items()):
        hardware = _product(results)
        rows = {
            str(problem): [_kernelbench_row(result, hardware) for result in group]
            for problem, group in sorted(problems.items())
        }
        files[f"level{level}/eval_results.json"] = _json(rows, 4)
        baselines = {
            result.file.rpartition("/")[2]: {"mean": latency.baseline_ms}
            for group in problems.values()
            for result in group
            if (latency := _largest_call(result)) is not None
        }
        if baselines:
            files[f"level{level}/baseline_time.json"] = _json({f"level{level}": baselines}, 4)
    return files


def _kernelbench_row(result: PredictionResult, hardware: str) -> Row:
    latency = _largest_call(result)
    metadata: Row = {"hardware": hardware, "device": result.device}
    if result.why:
        compiled, wrong = result.call, result.verdict in (Verdict.WRONG, "differs")
        issue = "correctness_issue" if wrong else "runtime_error" if compiled else "compilation_error"
        metadata |= {issue: result.why, f"{issue}_name": result.kind}
    return {
        "sample_id": result.sample - 1,
        "compiled": result.call,
        "correctness": result.execution,
        "metadata": metadata,
        "runtime": NOT_MEASURED if latency is None else latency.candidate_ms,
        "runtime_stats": {},
    }


def _largest_call(result: PredictionResult) -> Latency | None:
    """Returns the timed call at the largest sizes: KernelBench times one call. The reference takes longest there."""
    return max(_latencies(result), key=lambda latency: latency.baseline_ms, default=None)


# KernelBench-X: EVAL/unified_results.py


def _kernelbench_x(results: Sequence[PredictionResult], name: str) -> Files:
    """`metrics.json` by task, and `summary.json`."""
    files: Files = {}
    for number, group in _by_sample(results):
        files[f"metrics{_mark(number)}.json"] = _json({result.file: _metrics(result) for result in group}, 2)
        files[f"summary{_mark(number)}.json"] = _json(_summary(name, group), 2)
    return files


def _metrics(result: PredictionResult) -> Row:
    latencies, speedup = _latencies(result), _ratio_of_sums(result)
    milliseconds = sum(latency.candidate_ms for latency in latencies)
    work = [_work(latency) for latency in latencies]
    size, flops = (
        sum(part) if work and all(part) else 0 for part in (zip(*work, strict=True) if work else ((), ()))
    )
    return {
        "file": result.file,
        "call_ok": result.call,
        "exe_ok": result.execution,
        "perf_ok": bool(latencies),
        "dtype": "",
        "runtime_ms": round(milliseconds, 4) if latencies else NOT_AVAILABLE,
        "gbs": round(size / milliseconds / 1e6, 4) if size else NOT_AVAILABLE,
        "tflops": round(flops / milliseconds / 1e9, 4) if flops else NOT_AVAILABLE,
        "speedup": NOT_AVAILABLE if speedup is None else round(speedup, 4),
        "maintainability": NOT_AVAILABLE,
        "code_quality": {},
        "performance": [{"input_size": latency.case, "ms": latency.candidate_ms} for latency in latencies],
        "error": "not timed" if result.execution and not latencies else result.why,
        "code": result.source,
    }


def _summary(name: str, results: Sequence[PredictionResult]) -> Row:
    """Counts and means; the tool writes 0.0 for a mean over nothing."""
    total = len(results)
    timed = [(result, speedup) for result in results if (speedup := _ratio_of_sums(result)) is not None]
    passed = {
        "call": sum(result.call for result in results),
        "exe": sum(result.call and result.execution for result in results),
        "perf": sum(bool(_latencies(result)) for result in results),
    }
    summary: Row = {"method": name, "total": total}
    for stage, count in passed.items():
        summary |= {f"{stage}_pass": count, f"{stage}_rate": round(count / total * 100, 1)}
    sums = [_sums(result) for result, _ in timed]
    together = sum(before for before, _ in sums) / sum(after for _, after in sums) if sums else 0.0
    return summary | {
        "avg_speedup": round(together, 3),
        "avg_speedup_global": round(together, 3),
        "avg_speedup_per_task": round(fmean(round(speedup, 4) for _, speedup in timed), 3) if timed else 0.0,
    }


# AgentKernelArena: src/evaluator.py, write_task_result


def _arena(results: Sequence[PredictionResult], name: str) -> Files:
    """`workspace_GPU_NAME/run_1/TASK/task_result.yaml` for the first sample of each task, `run_2` for the second, ..."""
    gpu = re.sub(r"[^A-Za-z0-9.-]+", "-", _product(results))
    files = {}
    for result in results:
        run = f"workspace_{gpu}_{name}/run_{result.sample}"
        text: str = yaml.dump(_task_result(result, name), default_flow_style=False, sort_keys=False)
        files[f"{run}/{result.file.replace('/', '_')}/task_result.yaml"] = text
    return files


def _task_result(result: PredictionResult, name: str) -> Row:
    """The keys of the arena's evaluator; its post-processing adds `score`."""
    latencies = _latencies(result)
    compiled = result.call and result.verdict != Verdict.COMPILE_ERROR
    ratios = [latency.baseline_ms / latency.candidate_ms for latency in latencies]
    is_timed = result.speedup is not None
    methods = sorted({str(latency.method) for latency in latencies})
    return {
        "task_name": result.file,
        "pass_compilation": compiled,
        "compilation_error_message": None if compiled else result.why,
        "pass_correctness": result.execution,
        "correctness_error_message": result.why if compiled and not result.execution else None,
        "base_execution_time": fmean(latency.baseline_ms for latency in latencies) if is_timed else 0.0,
        "best_optimized_execution_time": fmean(latency.candidate_ms for latency in latencies)
        if is_timed
        else 0.0,
        "speedup_ratio": fmean(ratios) if is_timed else 0.0,
        "baseline_benchmark_methods": methods,
        "optimized_benchmark_methods": list(methods),
        "benchmark_method_consistent": len(methods) == 1,
        "valid_baseline_cases": len(latencies),
        "valid_optimized_cases": len(latencies),
        "speedup_calculation_error_message": "not timed" if result.execution and not is_timed else None,
        "optimization_summary": f"{name}, judged by Wavedeck",
    }


# flashinfer-bench: flashinfer_bench/data/solution.py. SOL-ExecBench: src/sol_execbench/core/data/solution.py


def _solutions(results: Sequence[PredictionResult], name: str, *, spec: Row) -> Files:
    """For each definition `solutions/wavedeck/OP/DEFINITION/SOLUTION.json`, with the fastest correct candidate."""
    files = {}
    for file, group in _by_file(result for result in results if result.execution):
        winner = max(group, key=lambda result: _ratio_of_sums(result) or 0.0)
        definition = file.rpartition("/")[2]
        solution = re.sub(r"[^\w.-]+", "-", f"{definition}_{name}")
        document = {
            "name": solution,
            "definition": definition,
            "author": "wavedeck",
            "spec": spec | {"entry_point": "main.py::run", "destination_passing_style": False},
            "sources": [{"path": "main.py", "content": winner.source}],
        }
        files[f"solutions/wavedeck/{file}/{solution}.json"] = _json(document, 2)
    return files


# What the formats share


def _json(document: object, indent: int) -> str:
    return json.dumps(document, indent=indent)


def _by_sample(results: Iterable[PredictionResult]) -> Iterator[tuple[int, list[PredictionResult]]]:
    """Yield the number of each sample, from 1, with its results in their order."""
    in_order = sorted(results, key=lambda result: result.sample)
    for number, group in groupby(in_order, key=lambda result: result.sample):
        yield number, list(group)


def _by_file(results: Iterable[PredictionResult]) -> Iterator[tuple[str, list[PredictionResult]]]:
    """Yield each task's own name with its results, sorted by name."""
    in_order = sorted(results, key=lambda result: (result.file, result.sample))
    for file, group in groupby(in_order, key=lambda result: result.file):
        yield file, list(group)


def _product(results: Iterable[PredictionResult]) -> str:
    """Returns the product that judged the results; `cpu` without a GPU."""
    evaluations = (result.evaluation for result in results)
    provenances = (evaluation.provenance for evaluation in evaluations if evaluation is not None)
    return next(
        (provenance.product for provenance in provenances if provenance and provenance.product), "cpu"
    )


def _mark(sample: int) -> str:
    """Returns the part of a file's name for the second and each later sample of a task."""
    return "" if sample == 1 else f"_{sample}"


def _stem(result: PredictionResult) -> str:
    return result.file.rpartition("/")[2].removesuffix(".py")


def _latencies(result: PredictionResult) -> Sequence[Latency]:
    """Returns the timed cases of a correct candidate: calls of the task's test, and one with inputs for timing."""
    return result.evaluation.latency if result.evaluation is not None and result.execution else ()


def _work(latency: Latency) -> tuple[int, int]:
    """Returns bytes and FLOPs of a call; 0 for what is not known."""
    efficiency = latency.efficiency
    return (0, 0) if efficiency is None else (efficiency.bytes, efficiency.flops)


def _sums(result: PredictionResult) -> tuple[float, float]:
    """Returns the reference's and the candidate's time of all timed cases together."""
    latencies = _latencies(result)
    return sum(latency.baseline_ms for latency in latencies), sum(
        latency.candidate_ms for latency in latencies
    )


def _ratio_of_sums(result: PredictionResult) -> float | None:
    """Returns the speedup as GEAK-eval, TritonBench and KernelBench-X define it; `None` if no case has a ratio."""
    if result.speedup is None:
        return None
    before, after = _sums(result)
    return before / after


_FORMATS: Mapping[SuiteKind, Callable[[Sequence[PredictionResult], str], Files]] = {
    SuiteKind.TRITONBENCH_REVISED: _geak_eval,
    SuiteKind.ROCM: _rocm,
    SuiteKind.TRITONBENCH_G: _tritonbench,
    SuiteKind.TRITONBENCH_T: _tritonbench,
    SuiteKind.KERNELBENCH_X: _kernelbench_x,
    SuiteKind.KERNELBENCH: _kernelbench,
    SuiteKind.AGENTKERNELARENA: _arena,
    SuiteKind.FLASHINFER_TRACE: partial(_solutions, spec={"language": "triton", "target_hardware": ["cuda"]}),
    SuiteKind.SOL_EXECBENCH: partial(
        _solutions, spec={"languages": ["triton"], "target_hardware": ["LOCAL"]}
    ),
}
