"""Block sizes by shape stand in a table of data classes, chosen by an enumeration and cached."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")

import functools
from dataclasses import dataclass
from enum import Enum


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


class Width(Enum):
    NARROW = 64
    MIDDLE = 1024
    WIDE = 1 << 30


@dataclass(frozen=True)
class Config:
    warps: int
    stages: int = 2


TABLE = {Width.NARROW: Config(1), Width.MIDDLE: Config(4), Width.WIDE: Config(8, stages=1)}


@functools.lru_cache(maxsize=None)
def config_for(columns: int) -> Config:
    return TABLE[next(width for width in Width if columns <= width.value)]


def softmax(x: torch.Tensor) -> torch.Tensor:
    chosen = config_for(x.shape[1])
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](
        x,
        out,
        x.shape[1],
        BLOCK=triton.next_power_of_2(x.shape[1]),
        num_warps=chosen.warps,
        num_stages=chosen.stages,
    )
    return out
