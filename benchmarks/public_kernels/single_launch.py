"""Kernels with one launch a call, all but one autotuned."""

CONFIGS = """
def configs(*blocks):
    return [
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
        for block in blocks
        for warps in (2, 4, 8)
        for stages in (1, 2)
    ]
"""

MATMUL = (
    """
def matmul_configs():
    return [
        triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
        for bm, bn in ((32, 32), (64, 64), (64, 128), (128, 64))
        for bk in (32, 64)
        for warps, stages in ((4, 2), (8, 3))
    ]


@triton.autotune(configs=matmul_configs(), key=["M", "N", "K"])
@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + inner
        x = tl.load(a + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + columns[None, :], mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    matmul_kernel[lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))](a, b, c, M, N, K)
    return c
""",
    """
def test_matmul():
    results = {}
    for number, (m, n, k) in enumerate(((128, 128, 64), (96, 160, 80), (64, 33, 17))):
        a = torch.randn((m, k), device="cuda", dtype=torch.float16)
        b = torch.randn((k, n), device="cuda", dtype=torch.float16)
        results[f"test_case_{number}"] = matmul(a, b)
    return results


result_gold = test_matmul()
""",
)


def _of_rows(name: str, body: str) -> tuple[str, str]:
    """Return a kernel that a program runs for each row, with blocks by the row's length, and its test."""
    reference = f"""
@triton.autotune(configs=[triton.Config({{}}, num_warps=w, num_stages=s) for w in (1, 2, 4, 8) for s in (1, 2)], key=["N"])
@triton.jit
def {name}_kernel(x, w, out, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    values = tl.load(x + row * N + columns, mask=mask, other=0.0).to(tl.float32)
    weights = tl.load(w + columns, mask=mask, other=0.0).to(tl.float32)
{body}
    tl.store(out + row * N + columns, result, mask=mask)


def {name}(x, w):
    out = torch.empty_like(x)
    {name}_kernel[(x.shape[0],)](x, w, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""
    test = f"""
def test_{name}():
    results = {{}}
    for number, (rows, n, dtype) in enumerate(
        ((16, 128, torch.float32), (8, 200, torch.float16), (4, 1000, torch.float32), (4, 512, torch.bfloat16))
    ):
        x = torch.randn((rows, n), device="cuda", dtype=dtype)
        results[f"test_case_{{number}}"] = {name}(x, torch.randn((n,), device="cuda", dtype=dtype))
    return results


result_gold = test_{name}()
"""
    return reference, test


def _of_elements(name: str, formula: str, *, tuned: bool = True) -> tuple[str, str]:
    """Return a kernel for each element of two tensors, and its test."""
    decorator = '@triton.autotune(configs=configs(128, 256, 512, 1024), key=["count"])\n' if tuned else ""
    grid = 'lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)'
    block = "" if tuned else ", BLOCK=256"
    reference = f"""{CONFIGS if tuned else ""}

{decorator}@triton.jit
def {name}_kernel(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    a = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + at, {formula}, mask=mask)


def {name}(x, y):
    out = torch.empty_like(x)
    {name}_kernel[{grid}](x, y, out, x.numel(){block})
    return out
"""
    test = f"""
def test_{name}():
    results = {{}}
    for number, (count, dtype) in enumerate(((4096, torch.float32), (1000, torch.float32), (3001, torch.float16))):
        x, y = (torch.randn((count,), device="cuda", dtype=dtype) for _ in range(2))
        results[f"test_case_{{number}}"] = {name}(x, y)
    return results


result_gold = test_{name}()
"""
    return reference, test


KERNELS = {
    "matmul": MATMUL,
    "rms_norm": _of_rows(
        "rms_norm", "    result = values * tl.rsqrt(tl.sum(values * values, 0) / N + 1e-5) * weights"
    ),
    "layer_norm": _of_rows(
        "layer_norm",
        """    centred = tl.where(mask, values - tl.sum(values, 0) / N, 0.0)
    result = centred * tl.rsqrt(tl.sum(centred * centred, 0) / N + 1e-5) * weights""",
    ),
    "scaled_softmax": _of_rows(
        "scaled_softmax",
        """    scaled = tl.where(mask, values * weights, float("-inf"))
    powers = tl.exp(scaled - tl.max(scaled, 0))
    result = powers / tl.sum(powers, 0)""",
    ),
    "silu_and_mul": _of_elements("silu_and_mul", "a * tl.sigmoid(a) * b"),
    "smooth_difference": _of_elements("smooth_difference", "tl.sqrt((a - b) * (a - b) + 1e-3)", tuned=False),
}
