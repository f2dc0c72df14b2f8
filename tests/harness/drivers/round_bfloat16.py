"""Compares bfloat16 in the interpreter with torch, which also rounds after each operation; part of `interpret_candidates.py`."""

import kernels
import numpy as np
import torch

from harness.worker.interpreter.interpreter import observe
from harness.worker.interpreter.semantics.float_conversions import (
    bfloat16_bits,
    bfloat16_rounded,
    bfloat16_values,
)

ROWS = (
    "add", "sub", "mul", "div", "neg", "where", "maximum", "minimum", "abs", "cast", "affine", "scaled", "bitcast",
    "exp", "store", "full", "masked", "from_int", "from_fp16", "back",
)  # fmt: skip


def same(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """True if all values are equal; every NaN equals every NaN, and -0 equals 0."""
    return torch.equal(got.isnan(), expected.isnan()) and torch.equal(
        got.nan_to_num(nan=0), expected.nan_to_num(nan=0)
    )


def elementwise() -> dict[str, bool]:
    inf = float("inf")
    special = [0.0, -0.0, 1.0, -1.0, inf, -inf, float("nan"), 3e38, -3e38, 1e-39, 1.17549e-38, 2e-45]
    w = torch.cat(
        [torch.tensor(special), torch.randn(2000) * 10.0 ** torch.randint(-30, 30, (2000,)), torch.zeros(36)]
    )
    w = torch.cat([w[:2012], torch.randn(36)])
    x = w.bfloat16()
    y = w[torch.randperm(w.numel())].bfloat16()
    n = w.numel()
    half = torch.arange(n) < n // 2
    results = (
        x + y, x - y, x * y, x / y, -x, torch.where(x > y, x, y), torch.fmax(x, y), torch.fmin(x, y), x.abs(), w.bfloat16(),
        x * 2.0 + 1, (x.float() * 3).bfloat16(), x, torch.exp(w).bfloat16(), w.bfloat16(),
        torch.full((n,), 1.01, dtype=torch.bfloat16), torch.where(half, x, torch.tensor(3.140625, dtype=torch.bfloat16)),
        torch.arange(n).float().bfloat16(), x.half().bfloat16(), x,
    )  # fmt: skip
    expected = torch.stack([result.float() for result in results])
    with observe({"x": x, "y": y, "w": w}) as seen:
        got = kernels.in_bfloat16(x, y, w)
    assert seen.unsupported is None, seen.unsupported
    assert seen.missed_loads == seen.missed_stores == []
    skip = {
        "maximum",
        "minimum",
    }  # numpy and torch treat NaN differently; only elements without NaN are compared
    clean = ~(x.isnan() | y.isnan())
    # exp of torch and numpy may differ in the last bit of float32, which is rarely visible in bfloat16.
    result = {
        name: same(got[i][clean], expected[i][clean]) if name in skip else same(got[i], expected[i])
        for i, name in enumerate(ROWS)
    }
    result["exp"] = bool(
        (~torch.isclose(got[13], expected[13], rtol=8e-3, atol=0, equal_nan=True)).sum() == 0
    )
    result["bytes"] = (seen.requested_read_bytes, seen.requested_write_bytes) == (
        n * (2 + 2 + 4) + n // 2 * 2,
        19 * n * 2 + n * 4,
    )
    return result


def every_pattern() -> dict[str, bool]:
    """Converts all 65,536 values there and back, and rounds each float32 next to a rounding boundary."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bfloat16_values(bits)
    whole = bits.astype(np.uint32) << np.uint32(16)
    near = [whole + np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    random = np.random.default_rng(1).integers(0, 1 << 32, 1_000_000, dtype=np.uint32)
    wide = np.concatenate([*near, random]).view(np.float32)
    nearest = bfloat16_rounded(wide)
    nans = nearest[np.isnan(nearest)].view(np.uint32)
    return {
        "values": bool(
            np.array_equal(bfloat16_bits(values), bits) and np.array_equal(values.view(np.uint32), whole)
        ),
        "rounding": same(torch.from_numpy(nearest), torch.from_numpy(wide).bfloat16().float()),
        "nans": bool((nans == 0x7FC00000).all()),
    }


def report() -> dict[str, bool]:
    """Return, for each operation, whether all results are equal."""
    torch.manual_seed(0)
    return elementwise() | every_pattern()
