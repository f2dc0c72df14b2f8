# ruff: noqa: N803 -- as kernels are written
"""Calls functions of the device library in an interpreted kernel and prints the results as JSON.

Arguments: a target's name, and a JSON list of calls (name, dtype, dtype of the result, values).
"""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
import triton.language as tl

from harness.hardware.targets import target
from harness.worker.interpreter.interpreter import UnsupportedHere, prepare

prepare(target(sys.argv[1]))

from triton.language.extra import libdevice  # noqa: E402 -- after the process is prepared, as a guest does it


@triton.jit
def unary_kernel(x, out, FUNCTION: tl.constexpr):
    tl.store(out, FUNCTION(tl.load(x)))


@triton.jit
def binary_kernel(x, y, out, FUNCTION: tl.constexpr):
    tl.store(out, FUNCTION(tl.load(x), tl.load(y)))


def call(name: str, dtype: str, result: str, *values: float):
    arguments = [torch.tensor([value], dtype=getattr(torch, dtype)) for value in values]
    out = torch.zeros(1, dtype=getattr(torch, result))
    kernel = unary_kernel if len(values) == 1 else binary_kernel
    try:
        kernel[(1,)](*arguments, out, FUNCTION=getattr(libdevice, name))
    except Exception as error:  # noqa: BLE001
        cause = error.__cause__ or error
        return f"{'unsupported' if isinstance(cause, UnsupportedHere) else type(cause).__name__}: {cause}"
    return np.asarray(out.double() if out.dtype.is_floating_point else out).tolist()[0]


print(json.dumps([call(*arguments) for arguments in json.loads(sys.argv[2])]))  # noqa: T201
