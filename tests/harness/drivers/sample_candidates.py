"""Samples the candidates of `sampled_kernels.py` at large sizes and prints the reports as JSON."""

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
from harness.wire.messages.sampler import SampleCases
from harness.worker.estimate import sampler
from harness.worker.estimate.cpu_budget import Budget
from harness.worker.estimate.sampling_worker import sample_case
from harness.worker.interpreter import interpreter

DIES = 8

torch.set_num_threads(1)
interpreter.prepare(target("gfx942"))
sampler.install()

import sampled_kernels  # noqa: E402 -- after the process is prepared, as a guest does it


def tensor(name: str, *shape: int, dtype: str = "float32") -> ArgumentSpec:
    return ArgumentSpec(
        name=name, shape=shape, strides=torch.empty(shape, device="meta").stride(), dtype=dtype
    )


ROWS = (tensor("x", 8192, 8192),)
SQUARE = (tensor("a", 2048, 2048, dtype="float16"), tensor("b", 2048, 2048, dtype="float16"))
WORK = {
    "one_pass": ROWS,
    "three_pass": ROWS,
    "few": (tensor("x", 20, 1000),),
    "matmul": SQUARE,
    "swizzled": (*SQUARE, ArgumentSpec(name="dies", scalar=DIES)),
    "skips_small_values": (tensor("x", 1 << 24),),
    "gathers": (tensor("keys", 1 << 22, dtype="int64"), tensor("table", 1 << 26)),
    "waits": (tensor("x", 1000),),
    "branches_on_values": (tensor("x", 128, 1024),),
    "sums_rows": (tensor("values", 1 << 24), tensor("bounds", 8193, dtype="int64")),
    "sums_rows_by_length": (tensor("values", 1 << 24), tensor("bounds", 8193, dtype="int64")),
    "strides": (tensor("x", 1 << 26),),
    "strides_and_catches_all": (tensor("x", 1 << 26),),
    "loops_without_memory": (tensor("x", 1 << 10),),
    "overflows": (tensor("x", 1 << 18, 16384, dtype="float16"),),
}
SECONDS = {"strides": 0.3, "strides_and_catches_all": 0.3, "loops_without_memory": 0.3}
ENTRIES = {"few": "one_pass", "swizzled": "matmul"}


def main() -> None:
    reports = {}
    for name, arguments in WORK.items():
        entry = ENTRIES.get(name, name)
        request = SampleCases(source="", entry_point=entry, cases=msgspec.Raw(), target="gfx942")
        seconds = SECONDS.get(name, 60.0)
        report = sample_case(sampled_kernels, request, CaseSpec(name, arguments), DIES, Budget(1, seconds))
        reports[name] = msgspec.to_builtins(report)
    print(json.dumps(reports))  # noqa: T201


main()
