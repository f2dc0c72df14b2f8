"""References of our own that round to float16 or int8 inside, with tests that call them, exact kernels, and wrong variants."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.tasks.scripts import HEADER


class Rounding(NamedTuple):
    """A reference with a rounding of its own that exceeds its task's tolerance."""

    reference: str
    test: str
    exact: dict[str, str]
    """Replacements in the reference that give a kernel which is as right, or more exact."""
    mutants: dict[str, dict[str, str]]
    """Replacements in the exact kernel that make it wrong, by name."""


ATTENTION = (
    HEADER
    + """

@triton.jit
def attend_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, COUNT: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, SIZE)
    keys = tl.arange(0, COUNT)
    start = tl.program_id(1) * COUNT * SIZE
    q = tl.load(q_ptr + start + rows[:, None] * SIZE + columns[None, :])
    k = tl.load(k_ptr + start + keys[:, None] * SIZE + columns[None, :])
    v = tl.load(v_ptr + start + keys[:, None] * SIZE + columns[None, :])
    q = (q * scale).to(tl.float16)
    k = k.to(tl.float16)
    scores = tl.dot(q, tl.trans(k))
    scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    total = tl.sum(weights, axis=1)
    out = tl.dot(weights, v) / total[:, None]
    tl.store(out_ptr + start + rows[:, None] * SIZE + columns[None, :], out)


def attend(q, k, v):
    out = torch.empty_like(q)
    heads, count, size = q.shape
    attend_kernel[(count // 16, heads)](q, k, v, out, size**-0.5, COUNT=count, SIZE=size, ROWS=16)
    return out
"""
)
_ATTEND = """
def test_attend():
    q, k, v = (torch.randn(4, 64, 32, device="cuda") for _ in range(3))
    return attend(2.0 * q, k, v)


result_gold = test_attend()
"""

QUANTIZE = (
    HEADER
    + """

@triton.jit
def quantize_kernel(x_ptr, q_ptr, scale_ptr, SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, SIZE)
    x = tl.load(x_ptr + row * SIZE + columns).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x)), 1e-10)
    scaled = x * (127 / largest)
    rounded = tl.where(scaled >= 0, tl.floor(scaled + 0.5), tl.ceil(scaled - 0.5))
    tl.store(q_ptr + row * SIZE + columns, rounded.to(tl.int8))
    tl.store(scale_ptr + row, largest / 127)


def quantize(x):
    rows, size = x.shape
    q = torch.empty(rows, size, dtype=torch.int8, device=x.device)
    scale = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
    quantize_kernel[(rows,)](x, q, scale, SIZE=size)
    return q, scale
"""
)
_QUANTIZE = """
def test_quantize():
    # Multiples of 1/128 with a scale of 1/8: one element in 16 lies in the middle between two integers.
    x = (torch.randn(64, 256, device="cuda") * 4 * 128).round() / 128
    x[:, 0] = 15.875
    return quantize(x.clamp(-15.875, 15.875).half())


result_gold = test_quantize()
"""

LINEAR = (
    HEADER
    + """

@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, out_ptr, COUNT: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, SIZE)
    out = tl.zeros((ROWS, SIZE), dtype=tl.float32)
    for start in range(0, COUNT, 32):
        terms = start + tl.arange(0, 32)
        x = tl.load(x_ptr + rows[:, None] * COUNT + terms[None, :])
        w = tl.load(w_ptr + terms[:, None] * SIZE + columns[None, :])
        out += tl.dot(x.to(tl.float16), w.to(tl.float16))
    out += tl.load(b_ptr + columns)[None, :]
    tl.store(out_ptr + rows[:, None] * SIZE + columns[None, :], tl.maximum(out, 0.0))


def linear(x, w, b):
    out = torch.empty(x.shape[0], w.shape[1], device=x.device)
    linear_kernel[(x.shape[0] // 16,)](x, w, b, out, COUNT=w.shape[0], SIZE=w.shape[1], ROWS=16)
    return out
"""
)
_LINEAR = """
def test_linear():
    x, w, b = torch.randn(64, 256, device="cuda"), torch.randn(256, 64, device="cuda"), torch.randn(64, device="cuda")
    return linear(x, w, b)


result_gold = test_linear()
"""

ROUNDINGS = {
    "attend": Rounding(
        ATTENTION,
        _ATTEND,
        exact={".to(tl.float16)": "", "tl.trans(k))": 'tl.trans(k), input_precision="ieee")'},
        mutants={
            "operands in bfloat16": {
                "q = (q * scale)": "q = (q * scale).to(tl.bfloat16)",
                "k = k": "k = k.to(tl.bfloat16)",
            },
            "a scale for another size": {"size**-0.5": "(size + 1)**-0.5"},
            "the diagonal is masked": {
                "keys[None, :] <= rows[:, None]": "(keys[None, :] < rows[:, None]) | (keys[None, :] == 0)"
            },
            "weights are normalized in bfloat16": {
                "out = tl.dot(weights, v)": "out = tl.dot(weights.to(tl.bfloat16).to(tl.float32), v)"
            },
            "a base that is rounded": {
                "tl.exp(scores - tl.max(scores, axis=1)[:, None])": "tl.exp2(1.43 * (scores - tl.max(scores, axis=1)[:, None]))"
            },
        },
    ),
    "quantize": Rounding(
        QUANTIZE,
        _QUANTIZE,
        exact={
            "tl.where(scaled >= 0, tl.floor(scaled + 0.5), tl.ceil(scaled - 0.5))": "(scaled + 12582912.0) - 12582912.0"
        },
        mutants={
            "a range of 128": {"127 / largest": "128 / largest"},
            "values are cut off": {"(scaled + 12582912.0) - 12582912.0": "scaled"},
            "values are rounded down": {"(scaled + 12582912.0) - 12582912.0": "tl.floor(scaled)"},
            "values in bfloat16": {
                "scaled = x * (127 / largest)": "scaled = (x * (127 / largest)).to(tl.bfloat16).to(tl.float32)"
            },
            "a shift before the rounding": {"x * (127 / largest)": "x * (127 / largest) + 0.2"},
        },
    ),
    "linear": Rounding(
        LINEAR,
        _LINEAR,
        exact={"tl.dot(x.to(tl.float16), w.to(tl.float16))": 'tl.dot(x, w, input_precision="ieee")'},
        mutants={
            "a lost bias": {"out += tl.load(b_ptr + columns)[None, :]": "out += 0.0"},
            "a sum in bfloat16": {"out += tl.dot": "out = out.to(tl.bfloat16).to(tl.float32) + tl.dot"},
            "operands in bfloat16": {
                "tl.dot(x, w": "tl.dot(x.to(tl.bfloat16).to(tl.float32), w.to(tl.bfloat16).to(tl.float32)"
            },
            "a lost term": {"terms[None, :])": "terms[None, :], mask=terms[None, :] < COUNT - 1, other=0.0)"},
            "a slope below zero": {"tl.maximum(out, 0.0)": "tl.maximum(out, 0.01 * out)"},
        },
    ),
}


WEIGHTS = """import torch


def linear_w4(input, weight, bias):
    return torch.nn.functional.linear(input, weight, bias)
"""
"""The reference of a task that asks for weights of 4 bits: it has no quantization. KernelBench-X's tasks have this form."""
WEIGHTS_TEST = """
def test_linear():
    x = torch.randn(16, 256, device="cuda", dtype=torch.float16)
    w = torch.randn(64, 256, device="cuda", dtype=torch.float16)
    one = torch.ones(1, 4, device="cuda", dtype=torch.float16)
    corner = torch.tensor([[7.0, -8.0, 3.5, -3.5]], device="cuda", dtype=torch.float16)
    zero = torch.zeros(1, device="cuda", dtype=torch.float16)
    return [linear_w4(x, w, torch.randn(64, device="cuda", dtype=torch.float16)), linear_w4(one, corner, zero)]


test_results = test_linear()
"""
QUANTIZED_WEIGHTS = (
    HEADER
    + """

@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, out_ptr, COUNT: tl.constexpr, SIZE: tl.constexpr):
    terms, columns = tl.arange(0, COUNT), tl.arange(0, SIZE)
    x = tl.load(x_ptr + tl.program_id(0) * COUNT + terms).to(tl.float32)
    w = tl.load(w_ptr + columns[:, None] * COUNT + terms[None, :]).to(tl.float32)
    step = tl.max(tl.abs(w), axis=1) / 7.0
    levels = tl.floor(w / step[:, None] + 0.5)
    weights = (tl.clamp(levels, -8.0, 7.0) * step[:, None]).to(tl.float16).to(tl.float32)
    out = tl.sum(x[None, :] * weights, axis=1) + tl.load(b_ptr + columns).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0) * SIZE + columns, out.to(tl.float16))


def linear_w4(input, weight, bias):
    (rows, count), size = input.shape, weight.shape[0]
    out = torch.empty(rows, size, device=input.device, dtype=torch.float16)
    linear_kernel[(rows,)](input, weight, bias, out, COUNT=count, SIZE=size)
    return out
"""
)
"""Follows the scheme to the letter: its relative L1 error is above 0.1, the limit that KernelBench-X states for 4 bits."""
QUANTIZED_WEIGHTS_MUTANTS = {
    "weights of 3 bits": {"axis=1) / 7.0": "axis=1) / 3.0", "-8.0, 7.0": "-4.0, 3.0"},
    "values are rounded down": {"+ 0.5": ""},
    "lost terms": {"x[None, :] * weights": "tl.where(terms < COUNT - 8, x, 0.0)[None, :] * weights"},
    "one scale for all weights and a lost digit": {
        "tl.max(tl.abs(w), axis=1) / 7.0": "tl.max(tl.abs(w), axis=1) / 8.0 + 0.3"
    },
}


def with_replacements(text: str, replacements: dict[str, str]) -> str:
    """Return the text with all replacements; each must occur in it."""
    for old, new in replacements.items():
        assert old in text, old
        text = text.replace(old, new)
    return text
