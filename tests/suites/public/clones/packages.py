"""A small clone of the package aiter."""

from __future__ import annotations

from pathlib import Path

from .files import TRITON, write

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
