"""Time a task's timing baseline with `triton.testing.do_bench` in a new interpreter; for `benchmarks.timing`.

    .venv/bin/python -m benchmarks.do_bench TASK        prints {case: [milliseconds, milliseconds]} as JSON

The first time is plain `do_bench`. It empties the caches by filling a buffer with zeros, and the device writes these lines
back while the kernel is timed. The second time reads a buffer instead, as this project's clock does. Then both do the same work.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
import triton.testing

from benchmarks.usage import arguments
from suites import load_task

SEED = 1


def main() -> None:
    """Print the medians at `gpu` sizes."""
    task = load_task(arguments(__doc__)[0])
    entry = _module(task.folder / "baseline.py").__dict__[task.entry_points[0].name]
    make_inputs = _module(task.folder / "problem.py").make_inputs
    medians = {}
    for case in task.open_cases:
        generator = torch.Generator().manual_seed(SEED)
        inputs = make_inputs(dict(case.gpu), getattr(torch, case.dtype), generator)
        here = {
            name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()
        }
        medians[case.name] = [_bench(partial(entry, **here), reading=reading) for reading in (False, True)]
    json.dump(medians, sys.stdout)


def _bench(call: Callable[[], object], *, reading: bool) -> float:
    driver = triton.runtime.driver.active
    fill = driver.clear_cache
    if reading:
        driver.clear_cache = torch.sum
    try:
        return float(triton.testing.do_bench(call, warmup=50, rep=200, return_mode="median"))
    finally:
        driver.clear_cache = fill


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
