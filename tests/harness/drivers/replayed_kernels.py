# ruff: noqa: N803, SIM108 -- as kernels are written
"""Honest entry points whose calls must replay; `replay_calls.py` reads this file as a candidate. Each returns `2 * x + 1`."""

import functools

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

try:
    from triton.language.extra.cuda import libdevice as device_library
except ImportError:
    device_library = None

BLOCK = 128
SCALE: tl.constexpr = tl.constexpr(2.0)
SHIFTS = torch.arange(3000, dtype=torch.float32) * 0 + 1.0
SEMAPHORE = torch.zeros(1, dtype=torch.int32)


@triton.jit
def affine_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 128):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 1, mask=mask)


def plain(x):
    out = torch.empty_like(x)
    affine_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), num_warps=4)
    return out


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 256}, num_stages=3)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offsets)
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2 + 1, mask=offsets < n)


def tuned(x):
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


def zero_first(named):
    named["out_ptr"].zero_()


@triton.autotune(
    configs=[
        triton.Config({"PARTS": 4}, pre_hook=zero_first),
        triton.Config({"PARTS": 2}, pre_hook=zero_first),
    ],
    key=["n"],
    reset_to_zero=["out_ptr"],
)
@triton.jit
def split_kernel(x_ptr, out_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.atomic_add(out_ptr + offsets, (x * 2 + 1) / PARTS, mask=mask)


def split_with_hook(x):
    out = torch.empty_like(x)
    split_kernel[lambda meta: (triton.cdiv(x.numel(), BLOCK), meta["PARTS"])](x, out, x.numel(), BLOCK=BLOCK)
    return out


def split_with_zero(x):
    total = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    total.zero_()
    split_kernel.fn[(triton.cdiv(x.numel(), BLOCK), 2)](x, total, x.numel(), PARTS=2, BLOCK=BLOCK)
    return total.to(x.dtype)


@functools.lru_cache
def workspace(n, dtype):
    return torch.empty(n, dtype=dtype, device="cuda")


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


@triton.jit
def increase_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) + 1, mask=offsets < n)


def cached_workspace(x):
    """Keeps a workspace between calls; the workspace is larger than a record's limit for host contents."""
    between, out = workspace(x.numel(), x.dtype), torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), BLOCK),)
    double_kernel[grid](x, between, x.numel(), BLOCK=BLOCK)
    increase_kernel[grid](between, out, x.numel(), BLOCK=BLOCK)
    return out


def views(x):
    flat = x.reshape(-1).contiguous()
    padded = torch.empty(2 * flat.numel(), dtype=x.dtype, device=x.device)
    out = padded[::2]
    half = flat.numel() // 2
    for part in (slice(0, half), slice(half, None)):
        source, target = flat[part], torch.empty_like(flat[part])
        affine_kernel[(triton.cdiv(source.numel(), BLOCK),)](source, target, source.numel())
        out[part].copy_(target)
    return out.clone().view(x.shape)


def transposed(x):
    square = x.view(-1, 4).t()
    out = torch.empty(square.shape, dtype=x.dtype, device=x.device)
    affine_kernel[(triton.cdiv(x.numel(), BLOCK),)](square.contiguous(), out, x.numel())
    return out.t().reshape(-1)


def casts(x):
    wide = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    affine_kernel[(triton.cdiv(x.numel(), BLOCK),)](x.to(torch.float64), wide, x.numel())
    return wide.to(x.dtype)


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    out = tl.make_block_ptr(out_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    tl.store(out, tl.load(x, boundary_check=(0,)) * 2 + 1, boundary_check=(0,))


def block_pointers(x):
    out = torch.empty_like(x)
    block_pointer_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
    return out


@triton.jit
def descriptor_kernel(x_desc, out_desc, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    out_desc.store([start], x_desc.load([start]) * 2 + 1)


def host_descriptors(x):
    out = torch.empty_like(x)
    source, target = (TensorDescriptor(tensor, [x.numel()], [1], [BLOCK]) for tensor in (x, out))
    descriptor_kernel[(triton.cdiv(x.numel(), BLOCK),)](source, target, BLOCK)
    return out


@triton.jit
def _scaled(x, factor: tl.constexpr = SCALE):
    return x * factor


@triton.jit
def _shifted(x):
    return _scaled(x) + 1


@triton.jit
def nested_kernel(x_ptr, out_ptr, n, apply: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, apply(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


def helpers(x):
    out = torch.empty_like(x)
    nested_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), _shifted, BLOCK)
    return out


def in_place(x):
    affine_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, x, x.numel())
    return x


@triton.jit
def table_kernel(x_ptr, table_ptr, out_ptr, n, entries, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    shift = tl.load(table_ptr + offsets % entries, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2 + shift, mask=offsets < n)


def module_table(x):
    """Reads a table of some thousand entries that the import made."""
    out = torch.empty_like(x)
    table_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, SHIFTS, out, x.numel(), SHIFTS.numel(), BLOCK)
    return out


@triton.jit
def ticket_kernel(x_ptr, out_ptr, ticket_ptr, n, BLOCK: tl.constexpr):
    pid = tl.atomic_add(ticket_ptr, 1)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2 + 1, mask=offsets < n)
    if pid == tl.num_programs(0) - 1:
        tl.atomic_xchg(ticket_ptr, 0)


def tickets(x):
    out = torch.empty_like(x)
    ticket_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, SEMAPHORE, x.numel(), BLOCK)
    return out


@triton.jit
def addressed_kernel(pointers_ptr, n, BLOCK: tl.constexpr):
    source = tl.load(pointers_ptr).to(tl.pointer_type(tl.float32))
    target = tl.load(pointers_ptr + 1).to(tl.pointer_type(tl.float32))
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets, mask=offsets < n) * 2 + 1, mask=offsets < n)


def addresses(x):
    """Passes addresses in a tensor, as grouped matrix products do."""
    out = torch.empty_like(x)
    pointers = torch.tensor([x.data_ptr(), out.data_ptr()], device=x.device)
    addressed_kernel[(triton.cdiv(x.numel(), BLOCK),)](pointers, x.numel(), BLOCK)
    return out


def reads_a_size(x):
    """Reads one number on the host, which sets the grid."""
    length = torch.tensor([x.numel()], device=x.device)
    out = torch.empty_like(x)
    affine_kernel[(triton.cdiv(int(length.item()), BLOCK),)](x, out, int(length))
    return out


def reads_an_input(x):
    """Reads an element of the input on the host, as code for cumulative lengths does."""
    block = 64 if x[0].item() > 0 else 256
    out = torch.empty_like(x)
    affine_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out
