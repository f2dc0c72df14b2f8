"""Small folders of launches of tritonparse, and a clone of the package aiter."""

from __future__ import annotations

import json
from pathlib import Path

from .files import TRITON, write

CONTEXT = {
    "event_type": "launch",
    "grid": [2],
    "compilation_metadata": {"num_warps": 2, "num_stages": 1, "num_ctas": 1, "arch": "sm90"},
    "extracted_args": {
        "x_ptr": {
            "type": "tensor",
            "dtype": "torch.float32",
            "device": "cuda:0",
            "shape": [10, 10],
            "stride": [1, 10],
            "storage_offset": 3,
            "mean": 1,
            "std": 0.5,
            "min": 0.0,
            "max": 2,
        },
        "y_ptr": {"type": "tensor", "dtype": "torch.float32", "shape": [100], "stride": [1]},
        "n": {"type": "int", "value": 100},
        "factor": {"type": "float", "value": 2.0},
        "BLOCK": {"type": "int", "value": 64},
    },
}
"""A launch of `_scale_kernel` as tritonparse 0.6 writes it."""
REPRO = '''\
"""A launch of a kernel."""

import json
import torch
{head}

def create_args_from_json_file(path): ...


{kernel}


def launch_kernel():
    script_dir = Path(__file__).resolve().parent
    json_file = script_dir / "repro_line3_context_20260101000000.json"
    grid, args_dict = create_args_from_json_file(str(json_file))
    imported_kernel_function[tuple(grid)](args_dict["x_ptr"], args_dict["y_ptr"], num_warps=2)


if __name__ == "__main__":
    launch_kernel()
'''
AITER_OPERATOR = """\
import torch
import triton

from aiter.ops.triton._triton_kernels.scale import _scale_kernel
from aiter.ops.triton.utils._triton import arch_info
from aiter.ops.triton.utils.logger import Logger as Notes

_NOTES = Notes()


def scale(x: torch.Tensor):
    _NOTES.info("scale")  # aiter_only is a word in a comment
    y = torch.empty_like(x)
    _scale_kernel[(1,)](x, y, x.numel(), 2.0, BLOCK=arch_info.block())
    return y


def compiled(x):
    return aiter_only(x)


def configured(x):
    return open(__file__)
"""
AITER_TEST = """\
import pytest
import torch

from aiter.ops.triton.scale import {name}
{more}

def torch_scale(x):
    return 2 * x


@pytest.mark.parametrize("n", [3, 30])
def test_scale(n):
    x = torch.randn(n, device="cuda")
    torch.testing.assert_close({name}(x), torch_scale(x))
"""


def tritonparse(root: Path) -> Path:
    """Write launches of one kernel: with its source, with its file, and with a file that is missing."""
    tuned = TRITON.replace("@triton.jit", "@triton.autotune([triton.Config({})], key=[])\n@triton.jit")
    kernel = f"{tuned}\n\n# Use kernel function directly\nimported_kernel_function = _scale_kernel"
    embedded = f'CONTEXT_JSON = r"""\n{json.dumps(CONTEXT)}\n"""\n'

    def imports(folder: Path) -> str:
        search = f"p = r'{folder}'\nif p not in sys.path:\n    sys.path.insert(0, p)\n\n"
        return search + "from own_kernels import _scale_kernel as imported_kernel_function"

    folder = "_scale_kernel/"
    return write(
        root,
        {
            "own_kernels.py": TRITON,
            f"{folder}repro_line3_context_20260101000000.json": json.dumps(CONTEXT),
            f"{folder}repro_line3_20250101000000.py": "an older script of the same launch",
            f"{folder}repro_line3_20260101000000.py": REPRO.format(head="", kernel=kernel),
            f"{folder}repro_line4_20260101000000.py": REPRO.format(head=embedded, kernel=imports(root)),
            f"{folder}repro_line5_20260101000000.py": REPRO.format(head="", kernel=imports(root / "gone")),
        },
    )


def aiter(root: Path) -> Path:
    """Write a clone of aiter with tests of one operator, and with tests that need more of the package."""
    operator = AITER_OPERATOR.replace("import triton\n", "import triton\nfrom aiter.jit import aiter_only\n")
    return write(
        root,
        {
            "aiter/__init__.py": "raise ImportError('HIP')\n",
            "aiter/ops/triton/__init__.py": "",
            "aiter/ops/triton/scale.py": operator,
            "aiter/ops/triton/_triton_kernels/scale.py": TRITON.partition("def pack")[0],
            "aiter/ops/triton/utils/logger.py": "class Logger:\n    def info(self, text): ...\n",
            "aiter/ops/triton/utils/_triton/arch_info.py": "def block():\n    return 64\n",
            "op_tests/triton_tests/test_scale.py": AITER_TEST.format(name="scale", more=""),
            "op_tests/triton_tests/more/test_compiled.py": AITER_TEST.format(name="compiled", more=""),
            "op_tests/triton_tests/more/test_files.py": AITER_TEST.format(name="configured", more=""),
            "op_tests/triton_tests/more/test_common.py": AITER_TEST.format(
                name="scale", more="from aiter.test_common import checkAllclose\n"
            ),
        },
    )
