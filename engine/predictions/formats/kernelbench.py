"""KernelBench's results: `eval_results.json` for each level."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.predictions.results import PredictionResult

_TASK = re.compile(r"level(\d+)_(\d+)")


def files_of(results: Sequence[PredictionResult], _name: str) -> dict[str, object]:
    """Return the documents by file name."""
    levels: dict[str, dict[int, list[dict[str, object]]]] = {}
    for result in results:
        match = _TASK.fullmatch(result.task.partition("/")[2])
        if match:
            problems = levels.setdefault(match[1], {})
            problems.setdefault(int(match[2]), []).append(_row(result))
    return {
        f"level{level}/eval_results.json": {str(problem): rows for problem, rows in sorted(problems.items())}
        for level, problems in sorted(levels.items())
    }


def _row(result: PredictionResult) -> dict[str, object]:
    latency = result.evaluation.latency if result.evaluation is not None and result.execution else ()
    metadata = {"error": result.why, "error_name": result.kind} if result.why else {}
    return {
        "sample_id": result.sample - 1,
        "compiled": result.call,
        "correctness": result.execution,
        "metadata": metadata | {"device": result.device},
        "runtime": latency[0].candidate_ms if len(latency) == 1 else None,
        "runtime_stats": {},
    }
