"""Protects the note on kernels that only large sizes launch: their answers were never compared."""

from __future__ import annotations

import pytest

from harness import DevicePool
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def few(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


@triton.jit
def many(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    kernel = few if x.numel() < LIMIT else many
    kernel[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), BLOCK=4096)
    return out
"""


@pytest.mark.parametrize(
    ("limit", "note_count"), [("1 << 20", 1), pytest.param("1 << 62", 0, marks=pytest.mark.soak)]
)
async def test_kernel_of_only_large_sizes_gets_a_note(pool: DevicePool, limit: str, note_count: int) -> None:
    evaluation = await judge(pool, SOURCE.replace("LIMIT", limit))
    assert evaluation.verdict == "correct", evaluation.error
    notes = [note for note in evaluation.notes if "nothing is known of its answers" in note]
    assert len(notes) == note_count
    assert all(note.startswith("`many` is launched at the gpu sizes of case") for note in notes)
