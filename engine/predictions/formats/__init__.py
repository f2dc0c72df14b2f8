"""Writes results in a public benchmark's own format. A result or figure that is not known is absent or `null`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from engine.predictions.formats import geak_eval, kernelbench, kernelbench_x, tritonbench
from engine.predictions.results import PredictionResult
from sessions.files import write_whole
from suites.private_folder import make_private_folder
from suites.public.task import SuiteKind

Files = Mapping[str, object]
"""JSON documents by file name."""
_WRITERS: dict[SuiteKind, Callable[[Sequence[PredictionResult], str], Files]] = {
    SuiteKind.TRITONBENCH_REVISED: geak_eval.files_of,
    SuiteKind.ROCM: geak_eval.files_of,
    SuiteKind.TRITONBENCH_G: tritonbench.files_of,
    SuiteKind.TRITONBENCH_T: tritonbench.files_of,
    SuiteKind.KERNELBENCH_X: kernelbench_x.files_of,
    SuiteKind.KERNELBENCH: kernelbench.files_of,
}


def write_results(
    kind: SuiteKind, results: Sequence[PredictionResult], folder: Path, *, name: str
) -> list[Path]:
    """Write the results into a folder and return the files; none for a suite without a format of its own."""
    writer = _WRITERS.get(kind)
    judged = [result for result in results if result.counted]
    if writer is None or not judged:
        return []
    paths = []
    for file, document in writer(judged, name).items():
        path = folder / file
        make_private_folder(path.parent)
        write_whole(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
        paths.append(path)
    return paths
