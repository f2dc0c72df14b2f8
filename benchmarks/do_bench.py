"""A task's timing baseline under `triton.testing.do_bench`, in a fresh interpreter; for `benchmarks.timing`.

.venv/bin/python -m benchmarks.do_bench TASK        prints {case: milliseconds} as JSON
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch
import triton.testing

from suites import load_task

SEED = 1


def main() -> None:
    """Medians at `gpu` sizes."""
    task = load_task(sys.argv[1])
    entry = getattr(_module(task.folder / "baseline.py"), task.entry_points[0].name)
    make_inputs = _module(task.folder / "problem.py").make_inputs
    found = {}
    for case in task.open_cases:
        generator = torch.Generator().manual_seed(SEED)
        inputs = make_inputs(dict(case.gpu), getattr(torch, case.dtype), generator)
        here = {
            name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()
        }
        found[case.name] = triton.testing.do_bench(
            lambda here=here: entry(**here), warmup=50, rep=200, return_mode="median"
        )
    json.dump(found, sys.stdout)


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
