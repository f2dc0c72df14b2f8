# ruff: noqa: N803, BLE001 -- as kernels are written
"""Small candidates for the tests of the interpreter and the compiler; only subprocesses import this module."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    assert x.device == DEVICE
    assert y.is_cuda
    assert out.device.type == "cuda"
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(meta["x_ptr"].numel(), meta["BLOCK"]),)](
        x, y, out, n, BLOCK=1024, num_warps=4
    )
    return out


@triton.jit
def past_the_end_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets - 1, x + y, mask=offsets < n)


def past_the_end(x, y):
    out = torch.empty_like(x)
    past_the_end_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, x / tl.sum(x, axis=0), mask=mask)


def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=block)
    return out


@triton.jit
def matmul_body(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(
            a_ptr + rm[:, None] * K + (k + rk)[None, :],
            mask=(rm < M)[:, None] & (k + rk < K)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + (k + rk)[:, None] * N + rn[None, :],
            mask=(k + rk < K)[:, None] & (rn < N)[None, :],
            other=0.0,
        )
        acc += tl.dot(a, b)
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], c, mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    matmul_body(a_ptr, b_ptr, c_ptr, M, N, K, BM, BN, BK)


def product(kernel, a, b, side, *, BK=32, **options):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = triton.cdiv(m, side), triton.cdiv(n, side)
    kernel[grid](a, b, c, m, n, k, BM=side, BN=side, BK=BK, **options)
    return c


def matmul(a, b):
    return product(matmul_kernel, a, b, 64)


def spilling(a, b):
    return product(matmul_kernel, a, b, 256, num_warps=4)


CONFIGS = [
    triton.Config({"BM": 32, "BN": 32, "BK": 32}, num_warps=4, num_stages=2),
    triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=4, num_stages=2),
    triton.Config({"BM": 128, "BN": 128, "BK": 128}, num_warps=8, num_stages=4),
    triton.Config({"BM": 32, "BN": 32, "BK": 8}),
    triton.Config({"BM": 16, "BN": 16, "BK": 16}, num_warps=1, num_stages=1),
]


def at_least_32(configs, named_args, **kwargs):
    assert "a_ptr" in named_args
    kept = [config for config in configs if config.kwargs["BM"] >= 32]
    return [
        triton.Config(dict(config.kwargs), num_warps=config.num_warps, num_stages=config.num_stages)
        for config in kept
    ]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"], prune_configs_by={"early_config_prune": at_least_32})
@triton.heuristics({"EVEN": lambda args: args["K"] % args["BK"] == 0})
@triton.jit
def tuned_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr
):
    if EVEN:
        tl.static_assert(BK >= 16)
    matmul_body(a_ptr, b_ptr, c_ptr, M, N, K, BM, BN, BK)


def tuned_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tuned_kernel[lambda meta: [triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"])]](a, b, c, m, n, k)
    return c


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, CHECK: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    if CHECK:
        tl.store(out, tl.load(x, boundary_check=(0, 1)) * 2, boundary_check=(0, 1))
    else:
        tl.store(out, tl.load(x) * 2, boundary_check=(0, 1))


def doubled(x, check=True):
    out = torch.empty_like(x)
    block_pointer_kernel[(triton.cdiv(x.shape[0], 16),)](
        x, out, x.shape[0], x.shape[1], 16, triton.next_power_of_2(x.shape[1]), check
    )
    return out


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=offsets < n)


def histogram(x, bins):
    counts = torch.zeros(bins, dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(x.numel(), 128),)](x, counts, x.numel(), BLOCK=128)
    return counts


@triton.jit
def lock_kernel(lock_ptr, index):
    tl.atomic_cas(lock_ptr + index, 0, 7)


def locked(x, index):
    lock_kernel[(1,)](x, index)
    return x


def persistent(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    compiled = add_kernel.warmup(x, y, out, n, BLOCK=1024, num_warps=4, grid=(1,))
    compiled._init_handles()
    properties = triton.runtime.driver.active.utils.get_device_properties(x.device.index)
    waves = properties["max_num_regs"] // (compiled.n_regs * properties["warpSize"] * 4)
    assert waves > 0
    assert properties["multiprocessor_count"] > 0
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024, num_warps=4)
    return out


def added(x, y, **options):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024, **options)
    return out


def amd_options(x, y):
    return added(x, y, waves_per_eu=2, matrix_instr_nonkdim=16, kpack=2, instruction_sched_variant="none")


def nvidia_options(x, y):
    return added(x, y, maxnreg=64)


@triton.jit
def helper(x):
    return x + undefined_name  # noqa: F821


@triton.jit
def broken_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, helper(x), mask=offsets < n)


def broken(x):
    out = torch.empty_like(x)
    broken_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
    return out


def broken_but_caught(x, y):
    try:
        return broken(x)
    except Exception:
        return vector_add(x, y)


def asserts_at_gpu_sizes(x, y):
    assert x.numel() < 1000, "small only"
    return vector_add(x, y)


def asks_for_a_petabyte(x, y):
    torch.empty(1 << 50, dtype=torch.uint8, device=x.device)
    return vector_add(x, y)


def asks_for_half_a_terabyte(x, y):
    torch.empty(1 << 39, dtype=torch.uint8, device=x.device)
    return vector_add(x, y)


def loop_in_python(x, y):
    total = 0
    for number in range(1 << 40):  # for a day
        total += number
    return vector_add(x, y)


def loop_of_copies(x, y):
    for _ in range(1 << 40):
        x.clone()
    return vector_add(x, y)


def loop_of_parts(x, y):
    out = vector_add(x, y)
    for place in range(1 << 40):
        out[place] = x[place]
    return out


@triton.jit
def hungry_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    matmul_body(a_ptr, b_ptr, c_ptr, M, N, K, BM, BN, BK)


def hungry(a, b):
    return product(hungry_kernel, a, b, 128, BK=128, num_stages=4, num_warps=8)


def tensors_of_device(x):
    """Makes and moves tensors in all the ways that kernels use."""
    with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.current_stream()):
        torch.cuda.synchronize()
        moved = x.to("cuda", non_blocking=True).cuda().to(torch.device("cuda:0")).to(device=0)
    made = [
        torch.zeros(3, device="cuda:0"),
        torch.full((3,), 1.0, device=x.device, pin_memory=False),
        torch.tensor([1.0], device=DEVICE),
        x.new_empty(3, device="cuda"),
        torch.zeros_like(x, device=torch.device("cuda", torch.cuda.current_device())),
    ]
    with torch.device("cuda"):
        made.append(torch.ones(2))
    torch.set_default_device("cuda")
    made.append(torch.ones(2))
    torch.set_default_device("cpu")
    return {
        "same": moved.data_ptr() == x.data_ptr(),
        "on_gpu": all(t.is_cuda and t.device.type == "cuda" and t.get_device() == 0 for t in (x, *made)),
        "numbers": x.cpu().numpy().tolist(),
    }


@triton.jit
def flip_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + places, tl.flip(tl.load(x_ptr + places), 1))


def flipped(x):
    out = torch.empty_like(x)
    flip_kernel[(1,)](x, out, x.shape[0], x.shape[1])
    return out


@triton.jit
def sort_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + places, tl.sort(tl.load(x_ptr + places), dim=1))


def sorted_rows(x):
    out = torch.empty_like(x)
    sort_kernel[(1,)](x, out, x.shape[0], x.shape[1])
    return out


@triton.jit
def recur(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    places = tl.arange(0, N)
    _, out = tl.associative_scan((tl.load(a_ptr + places), tl.load(b_ptr + places)), 0, recur, reverse=True)
    tl.store(out_ptr + places, out)


def recurrence_back(x, y):
    out = torch.empty_like(x)
    recurrence_kernel[(1,)](x, y, out, x.numel())
    return out


@triton.jit
def float8_kernel(x_ptr, out_ptr, N: tl.constexpr):
    places = tl.arange(0, N)
    tl.store(out_ptr + places, tl.load(x_ptr + places).to(tl.float8e4b8).to(tl.float32))


def through_float8(x):
    out = torch.empty_like(x)
    float8_kernel[(1,)](x, out, x.numel())
    return out


@triton.jit
def assembly_kernel(x_ptr, out_ptr, N: tl.constexpr):
    places = tl.arange(0, N)
    x = tl.load(x_ptr + places)
    y = tl.inline_asm_elementwise("v_rcp_f32 $0, $1", "=v,v", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + places, y)


def with_assembly(x):
    out = torch.empty_like(x)
    assembly_kernel[(1,)](x, out, x.numel())
    return out


@triton.jit
def scaled_dot_kernel(a_ptr, s_ptr, out_ptr, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + places)
    scale = tl.load(s_ptr + tl.arange(0, N)[:, None] * (N // 32) + tl.arange(0, N // 32)[None, :])
    tl.store(out_ptr + places, tl.dot_scaled(a, scale, "e4m3", a, scale, "e4m3"))


def scaled_dot(x, scale):
    out = torch.empty(x.shape, device="cuda")
    scaled_dot_kernel[(1,)](x, scale, out, x.shape[0])
    return out


@triton.jit
def bfloat16_kernel(x_ptr, y_ptr, w_ptr, out_ptr, back_ptr, N: tl.constexpr):
    """Runs every operation of bfloat16; each result is one row of `out`."""
    places = tl.arange(0, N)
    x, y, w = tl.load(x_ptr + places), tl.load(y_ptr + places), tl.load(w_ptr + places)
    tl.store(out_ptr + 0 * N + places, x + y)
    tl.store(out_ptr + 1 * N + places, x - y)
    tl.store(out_ptr + 2 * N + places, x * y)
    tl.store(out_ptr + 3 * N + places, x / y)
    tl.store(out_ptr + 4 * N + places, -x)
    tl.store(out_ptr + 5 * N + places, tl.where(x > y, x, y))
    tl.store(out_ptr + 6 * N + places, tl.maximum(x, y))
    tl.store(out_ptr + 7 * N + places, tl.minimum(x, y))
    tl.store(out_ptr + 8 * N + places, tl.abs(x))
    tl.store(out_ptr + 9 * N + places, w.to(tl.bfloat16))
    tl.store(out_ptr + 10 * N + places, x * 2.0 + 1)
    tl.store(out_ptr + 11 * N + places, (x.to(tl.float32) * 3).to(tl.bfloat16))
    tl.store(out_ptr + 12 * N + places, x.to(tl.int16, bitcast=True).to(tl.bfloat16, bitcast=True))
    tl.store(out_ptr + 13 * N + places, tl.exp(w).to(tl.bfloat16))
    tl.store(out_ptr + 14 * N + places, w)
    tl.store(out_ptr + 15 * N + places, tl.full((N,), 1.01, tl.bfloat16) + tl.zeros((N,), tl.bfloat16))
    tl.store(out_ptr + 16 * N + places, tl.load(x_ptr + places, mask=places < N // 2, other=3.140625))
    tl.store(out_ptr + 17 * N + places, places.to(tl.bfloat16))
    tl.store(out_ptr + 18 * N + places, x.to(tl.float16).to(tl.bfloat16))
    tl.store(back_ptr + places, x.to(tl.float32))


def in_bfloat16(x, y, w):
    out, back = torch.empty((19, x.numel()), dtype=x.dtype, device="cuda"), torch.empty_like(w)
    bfloat16_kernel[(1,)](x, y, w, out, back, x.numel())
    return torch.cat([out.float(), back[None]])
