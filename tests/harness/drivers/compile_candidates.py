"""Compiles candidates of `kernels.py` for targets and prints the reports by target and candidate as JSON.

An argument is a target, or `sm_90=matmul,huge` for some candidates. Each target has its own process: all share the imports.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
import torch

from harness.hardware.targets import target
from harness.wire.calls.tensors import TensorSpec
from harness.worker.compiler.compiler import compile_candidate, prepare

torch.set_num_threads(1)


def tensor(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(dtype, shape, torch.empty(shape, device="meta").stride())


def pair(size: int) -> dict[str, TensorSpec]:
    return {"x": tensor(size), "y": tensor(size)}


def matrices(size: int) -> dict[str, TensorSpec]:
    return {"a": tensor(size, size, dtype="float16"), "b": tensor(size, size, dtype="float16")}


WORK = {
    "vector_add": {
        "big": pair(1 << 24),
        "twice": pair(1 << 25),
        "odd": pair(99_999),
    },
    "matmul": {"square": matrices(1024)},
    "tuned_matmul": {"square": matrices(1024)},
    "spilling": {"square": matrices(1024)},
    "hungry": {"square": matrices(1024)},
    "persistent": {"big": pair(1 << 24)},
    "amd_options": {"big": pair(1 << 24)},
    "nvidia_options": {"big": pair(1 << 24)},
    "broken": {"n1000": {"x": tensor(1000)}},
    "broken_but_caught": {"big": pair(1000)},
    "asks_for_a_petabyte": {"small": pair(100)},
    "asks_for_half_a_terabyte": {"small": pair(100)},
    "asserts_at_gpu_sizes": {"small": pair(100), "big": pair(1 << 24)},
    "huge": {"huge": pair(9 << 26)},
    "loop_in_python": {"big": pair(1 << 20)},
    "loop_of_copies": {"big": pair(1 << 20)},
    "loop_of_parts": {"big": pair(1 << 20)},
}
HOST_CPU_S = 0.3
"""CPU time for the host code of loops."""


def compile_for(name: str, candidates: list[str]) -> dict[str, object]:
    chosen = target(name)
    prepare(chosen)
    import kernels  # after the process is prepared, as a guest does it

    reports = {}
    for candidate in candidates:
        entry_point = "vector_add" if candidate == "huge" else candidate
        limits = {"host_cpu_s": HOST_CPU_S} if candidate.startswith("loop") else {}
        report = compile_candidate(kernels, entry_point, WORK[candidate], chosen, **limits)
        reports[candidate] = msgspec.to_builtins(report)
    return reports


def main() -> None:
    reports = {}
    with tempfile.TemporaryDirectory() as folder:
        for argument in sys.argv[1:]:
            name, _, candidates = argument.partition("=")
            file = Path(folder, name)
            if (child := os.fork()) == 0:
                file.write_text(
                    json.dumps(compile_for(name, candidates.split(",") if candidates else list(WORK)))
                )
                os._exit(0)
            os.waitpid(child, 0)
            reports[name] = json.loads(file.read_text())
    print(json.dumps(reports))  # noqa: T201


main()
