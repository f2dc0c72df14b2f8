"""Runs the candidates of `full_size_kernels.py` at large sizes and prints the reports as JSON."""

import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import msgspec
import torch

from harness.hardware.targets import target
from harness.wire.calls.case_specs import ArgumentSpec, CaseSpec
from harness.wire.limits import FULL_SIZE_CPU_S
from harness.wire.messages.full_sizes import RunAtFullSizes
from harness.worker.full_sizes import three_programs
from harness.worker.full_sizes.full_size_worker import run_case
from harness.worker.interpreter import interpreter

torch.set_num_threads(1)
interpreter.prepare(target("gfx942"))
three_programs.install()

import full_size_kernels  # noqa: E402 -- after the process is prepared, as a guest does it


def tensor(name: str, *shape: int, dtype: str = "float32") -> ArgumentSpec:
    return ArgumentSpec(
        name=name, shape=shape, strides=torch.empty(shape, device="meta").stride(), dtype=dtype
    )


ROWS = (tensor("x", 8192, 8192),)
SQUARE = (tensor("a", 2048, 2048, dtype="float16"), tensor("b", 2048, 2048, dtype="float16"))
WORK = {
    "one_pass": ROWS,
    "three_pass": ROWS,
    "half_of_rows": ROWS,
    "first_columns": ROWS,
    "small": (tensor("x", 3, 1000),),
    "matmul": SQUARE,
    "skips_small_values": (tensor("x", 1 << 24),),
    "gathers": (tensor("keys", 1 << 22, dtype="int64"), tensor("table", 1 << 26)),
    "waits": (tensor("x", 1000),),
    "branches_on_values": (tensor("x", 128, 1024),),
    "sums_rows": (tensor("values", 1 << 24), tensor("bounds", 8193, dtype="int64")),
    "sums_rows_by_length": (tensor("values", 1 << 24), tensor("bounds", 8193, dtype="int64")),
    "strides": (tensor("x", 1 << 26),),
    "strides_and_catches_all": (tensor("x", 1 << 26),),
    "loops_without_memory": (tensor("x", 1 << 10),),
    "stores_where_values_say": (tensor("x", (1 << 20) + 1),),
    "overflows": (tensor("x", 1 << 18, 16384, dtype="float16"),),
}
SECONDS = {"waits": 0.3, "strides": 0.3, "strides_and_catches_all": 0.3, "loops_without_memory": 0.3}
ENTRIES = {"small": "one_pass"}


def main() -> None:
    reports = {}
    for name, arguments in WORK.items():
        request = RunAtFullSizes("", ENTRIES.get(name, name), msgspec.Raw(), "gfx942", seed=1)
        report = run_case(
            full_size_kernels, request, CaseSpec(name, arguments), SECONDS.get(name, FULL_SIZE_CPU_S)
        )
        reports[name] = msgspec.to_builtins(report)
    print(json.dumps(reports))  # noqa: T201


main()
