"""GEAK-eval's results: `NAME_results_0.json` for the first prediction of each task, `_1` for the second, ..."""

from __future__ import annotations

from collections.abc import Sequence

from engine.predictions.results import PredictionResult

UNKNOWN_DIFFICULTY = -1
"""GEAK-eval's own value."""


def files_of(results: Sequence[PredictionResult], name: str) -> dict[str, object]:
    """Return the documents by file name."""
    passes: dict[int, list[dict[str, object]]] = {}
    for result in results:
        passes.setdefault(result.sample - 1, []).append(_row(result))
    files: dict[str, object] = {
        f"{name}_results_{number}.json": rows for number, rows in sorted(passes.items())
    }
    files[f"{name}_all_passes.json"] = [row for _, rows in sorted(passes.items()) for row in rows]
    return files


def _row(result: PredictionResult) -> dict[str, object]:
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
