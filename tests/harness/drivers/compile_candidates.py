"""Compiles candidates of `kernels.py` for one target and prints the reports as JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
import torch

from harness.hardware.targets import target
from harness.wire.case_specs import ArgumentSpec, CaseSpec
from harness.worker.compiler.compiler import compile_candidate, prepare

torch.set_num_threads(1)
TARGET = target(sys.argv[1])
prepare(TARGET)

import kernels  # noqa: E402 -- after the process is prepared, as a guest does it


def tensor(name: str, *shape: int, dtype: str = "float32") -> ArgumentSpec:
    return ArgumentSpec(
        name=name, shape=shape, strides=torch.empty(shape, device="meta").stride(), dtype=dtype
    )


def pair(size: int) -> tuple[ArgumentSpec, ...]:
    return (tensor("x", size), tensor("y", size))


def matrices(size: int) -> tuple[ArgumentSpec, ...]:
    return (tensor("a", size, size, dtype="float16"), tensor("b", size, size, dtype="float16"))


def column(dtype: str, *sizes: int) -> list[CaseSpec]:
    return [CaseSpec(f"n{size}", (tensor("x", size, dtype=dtype),)) for size in sizes]


WORK = {
    "vector_add": [
        CaseSpec("big", pair(1 << 24)),
        CaseSpec("twice", pair(1 << 25)),
        CaseSpec("odd", pair(99_999)),
    ],
    "softmax": [CaseSpec("rows", (tensor("x", 4096, 1024, dtype="float16"),))],
    "matmul": [CaseSpec("square", matrices(1024))],
    "tuned_matmul": [CaseSpec("square", matrices(1024))],
    "widely_tuned": [CaseSpec("square", matrices(1024)), CaseSpec("odd", matrices(1023))],
    "spilling": [CaseSpec("square", matrices(1024))],
    "hungry": [CaseSpec("square", matrices(1024))],
    "persistent": [CaseSpec("big", pair(1 << 24))],
    "only_config": [CaseSpec("big", pair(1 << 24))],
    "amd_options": [CaseSpec("big", pair(1 << 24))],
    "nvidia_options": [CaseSpec("big", pair(1 << 24))],
    "misspelt_option": [CaseSpec("big", pair(1 << 24))],
    "broken": column("float32", 1000),
    "broken_but_caught": [CaseSpec("big", pair(1000))],
    "asserts_at_gpu_sizes": [CaseSpec("small", pair(100)), CaseSpec("big", pair(1 << 24))],
    "narrow": column("float32", 1024),
    "histogram": [CaseSpec("keys", (tensor("x", 1 << 24, dtype="int64"), ArgumentSpec("bins", scalar=256)))],
    "huge": [CaseSpec("huge", pair(9 << 26))],
}


def main() -> None:
    reports = {}
    for name in sys.argv[2:] or WORK:
        entry = "vector_add" if name == "huge" else name
        reports[name] = msgspec.to_builtins(compile_candidate(kernels, entry, WORK[name], TARGET))
    print(json.dumps(reports))  # noqa: T201


main()
