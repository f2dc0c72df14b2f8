"""Protects tasks with a class `Model` as reference: small sizes, and the same parameters for both models."""

from __future__ import annotations

import pytest
import pytest_asyncio

from harness import DevicePool, Verdict
from suites import Task
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.scripts import model_task, record

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

REFERENCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        self.scale = nn.Parameter(torch.randn(width))
        self.shift = nn.Parameter(torch.randn(width))
        self.factor = factor

    def forward(self, x):
        return torch.relu(x * self.scale * self.factor + self.shift)


batch_size = 8192
width = 4096


def get_inputs():
    return [torch.rand(batch_size, width)]


def get_init_inputs():
    return [width, 2.0]
"""
CANDIDATE = """\
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x_ptr, scale_ptr, shift_ptr, out_ptr, count, width, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    scale = tl.load(scale_ptr + offsets % width, mask=mask)
    shift = tl.load(shift_ptr + offsets % width, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x * scale * factor + shift, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        self.scale = nn.Parameter(torch.randn(width))
        self.shift = nn.Parameter(torch.randn(width))
        self.factor = factor

    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        kernel[grid](x, self.scale, self.shift, out, x.numel(), x.shape[1], self.factor, BLOCK=1024)
        return out
"""
PARAMETERS = """\
        self.scale = nn.Parameter(torch.randn(width))
        self.shift = nn.Parameter(torch.randn(width))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def affine(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("recorded")
    public = model_task(REFERENCE, folder, "affine", "ModelNew(width, factor)")
    return await record(pool, public)


async def test_a_module_is_judged_at_small_even_and_odd_sizes(affine: Task) -> None:
    assert "call-1: `ModelNew(256, 2.0)(x)` with x: float32[256, 256]" in affine.instruction
    assert "call-2: `ModelNew(255, 2.0)(x)` with x: float32[255, 255]" in affine.instruction
    assert affine.in_place == (), "running statistics are no output"
    assert affine.script is not None
    assert "judged at sizes up to 256; the benchmark's own are up to 8192" in affine.script.notes


@pytest.mark.parametrize(
    ("right", "variant"),
    drawn(
        [
            ("", ""),
            (PARAMETERS, "".join(reversed(PARAMETERS.splitlines(keepends=True)))),
            (
                "self.factor = factor\n",
                "self.factor = factor\n        self.kept = nn.Parameter(self.shift.detach().clone())\n",
            ),
        ],
        1,
    ),
)
async def test_parameters_are_equal_by_name_or_by_seed(
    pool: DevicePool, affine: Task, right: str, variant: str
) -> None:
    evaluation = await judge_task(pool, CANDIDATE.replace(right, variant, 1), affine)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)


@pytest.mark.parametrize(
    ("right", "wrong", "verdict", "words"),
    drawn(
        [
            (
                "tl.maximum(x * scale * factor + shift, 0.0)",
                "x * scale * factor + shift",
                Verdict.WRONG,
                "case call-",
            ),
            ("x.shape[1], self", "256, self", Verdict.WRONG, "case call-2"),
            ("class ModelNew", "class Other", Verdict.CALL_ERROR, "define ModelNew(width, factor)"),
        ],
        1,
    ),
)
async def test_a_wrong_model_is_refused(
    pool: DevicePool, affine: Task, right: str, wrong: str, verdict: Verdict, words: str
) -> None:
    evaluation = await judge_task(pool, CANDIDATE.replace(right, wrong), affine)
    assert evaluation.verdict is verdict
    assert evaluation.error is not None
    assert words in evaluation.error.message
