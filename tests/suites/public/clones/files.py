"""Writes the files of small clones; holds the Triton kernel that they share."""

from __future__ import annotations

from pathlib import Path

SEPARATOR = "#" * 146
TRITON = """\
import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def _scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * factor, mask=offsets < n)


def pack(x):
    return x.contiguous()


def scale(x: torch.Tensor, factor: float = 2.0):
    y = torch.empty_like(x)
    _scale_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), factor, BLOCK)
    return y


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=3.0):
        return scale(x, factor)


scale_with_gradients = _Scale.apply
"""


def separated(reference: str, test: str) -> str:
    """Return a file with a reference and its test."""
    return f"{reference}\n{SEPARATOR}\n\n{test}"


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder and return the folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
