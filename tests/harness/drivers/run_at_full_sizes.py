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
from harness.wire.calls.tensors import TensorSpec
from harness.wire.limits import FULL_SIZE_CPU_S
from harness.wire.messages.compiler import RunAtFullSizes
from harness.worker.full_sizes import three_programs
from harness.worker.full_sizes.full_size_worker import run_case
from harness.worker.interpreter import interpreter

torch.set_num_threads(1)
interpreter.prepare(target("gfx942"))
three_programs.install()

import full_size_kernels  # noqa: E402 -- after the process is prepared, as a guest does it


def tensor(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(dtype, shape, torch.empty(shape, device="meta").stride())


ROWS = {"x": tensor(8192, 8192)}
SQUARE = {"a": tensor(2048, 2048, dtype="float16"), "b": tensor(2048, 2048, dtype="float16")}
WORK = {
    "one_pass": ROWS,
    "half_of_rows": ROWS,
    "small": {"x": tensor(3, 1000)},
    "matmul": SQUARE,
    "skips_small_values": {"x": tensor(1 << 24)},
    "gathers": {"keys": tensor(1 << 22, dtype="int64"), "table": tensor(1 << 26)},
    "branches_on_values": {"x": tensor(128, 1024)},
    "sums_rows_by_length": {"values": tensor(1 << 24), "bounds": tensor(8193, dtype="int64")},
    "strides_and_catches_all": {"x": tensor(1 << 26)},
    "loops_without_memory": {"x": tensor(1 << 10)},
    "stores_where_values_say": {"x": tensor((1 << 20) + 1)},
    "overflows": {"x": tensor(1 << 18, 16384, dtype="float16")},
}
SECONDS = {"strides_and_catches_all": 0.3, "loops_without_memory": 0.3}
ENTRIES = {"small": "one_pass"}


def main() -> None:
    reports = {}
    for name, arguments in WORK.items():
        request = RunAtFullSizes("", ENTRIES.get(name, name), msgspec.Raw(), "gfx942", seed=1)
        report = run_case(full_size_kernels, request, name, arguments, SECONDS.get(name, FULL_SIZE_CPU_S))
        reports[name] = msgspec.to_builtins(report)
    print(json.dumps(reports))  # noqa: T201


main()
