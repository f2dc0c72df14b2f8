"""Protects 8-bit floats: formats equal to torch's, and a task whose 8-bit dtype depends on the target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from harness import DevicePool, Verdict
from harness.worker.interpreter.semantics.float_conversions import FLOAT8
from suites import Task
from suites.dtypes import NoSuchDtype, item_bytes, on_target, task_on
from suites.folder import read_task
from tests.suites.folders import write_folder
from tests.support.judge.judging import judge_task

pytestmark = pytest.mark.judge
DTYPES = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5": torch.float8_e5m2,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
TASK = """\
schema = 1
name = "rescale"
title = "A product of 8-bit matrices, scaled and stored in 8 bits"
category = "Quantization"
difficulty = 2
instruction = '''
Write `rescale(a, b, factor)`: `a @ b * factor` in float32, clamped to the largest value of the dtype, rounded once. `m` is
any positive number; `n` and `k` are multiples of 16.
'''

[[entry_points]]
name = "rescale"
signature = "rescale(a, b, factor)"

[[outputs]]
name = "out"

[tolerances]
fp8_e4m3 = { ulps = 0.51 }

[axes.n]
multiple_of = 16

[axes.k]
multiple_of = 32

[[cases]]
name = "plain"
dtype = "fp8_e4m3"
cpu = { m = 33, n = 32, k = 64 }
gpu = { m = 4096, n = 4096, k = 4096 }
"""
PROBLEM = """\
import torch


def make_inputs(sizes, dtype, generator):
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    a = torch.randn(m, k, generator=generator).to(dtype)
    b = torch.randn(k, n, generator=generator).to(dtype)
    return {"a": a, "b": b, "factor": 1 + 9 * torch.rand(1, generator=generator)}


def oracle(a, b, factor):
    largest = torch.finfo(a.dtype).max
    return (a.double() @ b.double() * factor.double()).clamp(-largest, largest)
"""
COST = """\
from suites import Cost, item_bytes


def cost(sizes, dtype):
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(2 * m * n * k, (m * k + k * n + m * n) * item_bytes(dtype), dot_dtype=dtype)
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def rescale_kernel(a_ptr, b_ptr, factor_ptr, out_ptr, m, n, k, largest, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=rows[:, None] < m, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :])
        total = tl.dot(a, b, total)
    out = total * tl.load(factor_ptr)
    out = tl.minimum(tl.maximum(out, -largest), largest)
    places = rows[:, None] * n + columns[None, :]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=rows[:, None] < m)


def rescale(a, b, factor):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    largest = torch.finfo(a.dtype).max
    rescale_kernel[(triton.cdiv(m, 32), n // 16)](a, b, factor, out, m, n, k, largest, M=32, N=16, K=32)
    return out
"""


def write_task(folder: Path, *, problem: str = PROBLEM) -> Task:
    written = write_folder(folder, name="rescale", task=TASK, problem=problem, cost=COST, baseline=KERNEL)
    return read_task(written, suite="mine")


def sources(values: np.ndarray) -> tuple[np.ndarray, ...]:
    """All values of 16 bits, and float32 values: random bits, the format's values, their middles and neighbours."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    middles = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    random = np.random.default_rng(1).integers(0, 1 << 32, 500_000, dtype=np.uint32).view(np.float32)
    near = np.concatenate([values, middles, *(np.nextafter(middles, to) for to in np.float32([0, np.inf]))])
    wide = np.concatenate([random, near, -near], dtype=np.float32)
    return bits.view(np.float16), (bits.astype(np.uint32) << 16).view(np.float32), wide


@pytest.fixture
def no_warnings() -> Iterator[None]:
    """As in the process that interprets kernels."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.usefixtures("no_warnings")
@pytest.mark.parametrize("name", FLOAT8)
def test_every_value_and_rounding_equals_torch(name: str) -> None:
    codec, dtype = FLOAT8[name], DTYPES[name]
    codes = torch.arange(256, dtype=torch.uint8)
    decoded = codes.view(dtype).float()
    assert np.array_equal(codec.decode(codes.numpy()), decoded.numpy(), equal_nan=True)
    values = decoded[decoded.isfinite() & (decoded >= 0)].unique().numpy().astype(np.float64)
    for source in sources(values):
        assert np.isnan(codec.decode(codec.encode(source))[np.isnan(source)]).all()
        numbers = source[~np.isnan(source)]
        clamped = torch.from_numpy(numbers).clamp(-values[-1], values[-1])
        assert np.array_equal(codec.encode(numbers), clamped.to(dtype).view(torch.uint8).numpy())
        towards_zero = values[np.searchsorted(values, np.abs(numbers), side="right") - 1]
        cut = codec.decode(codec.encode(numbers, to_zero=True))
        assert np.array_equal(cut, np.copysign(towards_zero, numbers))


@pytest.mark.parametrize("name", FLOAT8)
def test_float64_is_rounded_once(name: str) -> None:
    """Next to the middle between two values: float32 would round to the middle first."""
    codec = FLOAT8[name]
    decoded = codec.decode(np.arange(256, dtype=np.uint8))
    values = np.unique(decoded[np.isfinite(decoded) & (decoded >= 0)].astype(np.float64))
    middles = (values[1:] + values[:-1]) / 2
    assert np.array_equal(codec.decode(codec.encode(np.nextafter(middles, 0))), values[:-1])
    assert np.array_equal(codec.decode(codec.encode(np.nextafter(middles, np.inf))), values[1:])


def test_eight_bit_dtype_depends_on_target(tmp_path: Path) -> None:
    task = write_task(tmp_path)
    names = {name: task_on(task, name).cases[0].dtype for name in ("gfx942", "gfx950", "sm_90")}
    assert names == {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn", "sm_90": "float8_e4m3fn"}
    assert task_on(task, "gfx942").tolerances.keys() == {"float8_e4m3fnuz"}
    assert on_target("fp8_e5m2", "gfx942") == "float8_e5m2fnuz"
    assert on_target("float16", "gfx90a") == "float16"
    assert item_bytes("fp8_e4m3") == 1
    with pytest.raises(NoSuchDtype, match="gfx90a has no 8-bit floating point"):
        task_on(task, "gfx90a")


def test_task_may_name_the_formats_of_ocp_alone(tmp_path: Path) -> None:
    text = TASK.replace("fp8_e4m3", "float8_e4m3fn")
    folder = write_folder(tmp_path, name="rescale", task=text, problem=PROBLEM, cost=COST, baseline=KERNEL)
    task = read_task(folder, suite="mine")
    assert task_on(task, "sm_90").cases[0].dtype == "float8_e4m3fn"
    with pytest.raises(NoSuchDtype, match="gfx942 has no float8_e4m3fn; judge the task for gfx950"):
        task_on(task, "gfx942")


@pytest.mark.asyncio(loop_scope="session")
async def test_oracle_gets_the_eight_bit_dtype_of_an_output_of_wide_inputs(
    pool: DevicePool, tmp_path: Path
) -> None:
    text = TASK.replace('name = "out"\n', 'name = "out"\ndtype = "fp8_e4m3"\n').replace(
        'dtype = "fp8_e4m3"\ncpu', 'dtype = "float16"\ncpu'
    )
    problem = PROBLEM.replace("oracle(a, b, factor)", "oracle(a, b, factor, output_dtypes)").replace(
        "a.dtype", 'output_dtypes["out"]'
    )
    kernel = KERNEL.replace("dtype=a.dtype", "dtype=FORMAT").replace("finfo(a.dtype)", "finfo(FORMAT)")
    kernel = kernel.replace("@triton.jit", "FORMAT = torch.float8_e4m3fnuz\n\n\n@triton.jit")
    written = write_folder(tmp_path, name="rescale", task=text, problem=problem, cost=COST, baseline=kernel)
    evaluation = await judge_task(pool, kernel, read_task(written, suite="mine"))
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)


@pytest.mark.soak
@pytest.mark.asyncio(loop_scope="session")
async def test_each_target_uses_its_own_eight_bit_format(pool: DevicePool, tmp_path: Path) -> None:
    task = write_task(tmp_path)
    amd = await judge_task(pool, KERNEL, task, targets=("gfx942", "sm_90", "gfx90a"))
    assert (amd.verdict, amd.error) == (Verdict.CORRECT, None)
    assert set(amd.compile_errors) == {"gfx90a"}
    assert "no 8-bit" in amd.compile_errors["gfx90a"]
    assert all(row.matrix_instructions for name in ("gfx942", "sm_90") for row in amd.resources[name])
    assert (await judge_task(pool, KERNEL, task, targets=("sm_90",))).verdict is Verdict.CORRECT
    unsupported = await judge_task(pool, KERNEL, task, targets=("gfx90a",))
    assert (unsupported.verdict, [stage.ok for stage in unsupported.stages]) == (
        Verdict.UNSUPPORTED,
        [True] + [None] * 5,
    )


@pytest.mark.asyncio(loop_scope="session")
async def test_wrong_eight_bit_kernels_are_found(pool: DevicePool, tmp_path: Path) -> None:
    task = write_task(tmp_path)
    rounded_twice = KERNEL.replace(
        "out = total *", "out = total.to(out_ptr.dtype.element_ty).to(tl.float32) *"
    )
    scaled = KERNEL.replace("tl.load(factor_ptr)", "tl.load(factor_ptr).to(tl.float16) * 1.02")
    for source in (rounded_twice, scaled):
        evaluation = await judge_task(pool, source, task)
        assert (evaluation.verdict, evaluation.error and evaluation.error.kind) == (Verdict.WRONG, "mismatch")
    added = await judge_task(pool, KERNEL.replace("tl.dot(a, b,", "tl.dot(a + a, b,"), task)
    assert added.verdict is not Verdict.WRONG
    assert not added.verdict.counted or added.verdict is Verdict.COMPILE_ERROR


@pytest.mark.asyncio(loop_scope="session")
async def test_oracle_beyond_dtype_range_is_infra_error(pool: DevicePool, tmp_path: Path) -> None:
    unclamped = write_task(tmp_path, problem=PROBLEM.replace(".clamp(-largest, largest)", " * 100"))
    evaluation = await judge_task(pool, KERNEL, unclamped)
    assert evaluation.verdict is Verdict.INFRA_ERROR
    assert "clamp them, and say so" in evaluation.error.message
