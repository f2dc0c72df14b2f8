"""Prints the kernels that the compile worker requests for `tuned_matmul`, as block size and options, for gfx942 as JSON.

One case is timed, and one is a hidden case with another dtype that runs config 1 alone. No request is answered.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
import torch

from harness.hardware.targets import target
from harness.wire.calls.tensors import Arguments, TensorSpec
from harness.wire.messages.compiler import Binary, KernelIr
from harness.worker.compiler.ahead import Line
from harness.worker.compiler.compiler import compile_candidate, prepare


class Notes(Line):
    """Notes what is requested."""

    def __init__(self) -> None:
        self.asked: list[KernelIr] = []

    def ask(self, kernel: KernelIr) -> None:
        self.asked.append(kernel)

    def fetch(self, kernel: KernelIr) -> Binary:
        return Binary()


def square(dtype: str) -> Arguments:
    return {name: TensorSpec(dtype, shape=(256, 256), strides=(256, 1)) for name in "ab"}


def main() -> None:
    torch.set_num_threads(1)
    gfx942, notes = target("gfx942"), Notes()
    prepare(gfx942)
    import kernels  # after the process is prepared, as a guest does it

    report = compile_candidate(
        kernels,
        "tuned_matmul",
        {"timed": square("float16")},
        gfx942,
        line=notes,
        further={"hidden": square("bfloat16")},
        configs={"hidden": 1},
    )
    asked = [("bf16" in kernel.ttir, json.loads(kernel.options)["num_warps"]) for kernel in notes.asked]
    print(json.dumps({"asked": asked, "report": msgspec.to_builtins(report)}))  # noqa: T201


main()
