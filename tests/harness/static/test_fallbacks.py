"""Protects the static check for fallbacks: torch operators behind a condition are refused only if their result is returned."""

from __future__ import annotations

import textwrap

import msgspec
import pytest

from harness import Verdict
from harness.stages.static.inspection import inspect_source
from harness.stages.verdicts import conclude
from suites import load_task
from tests.support.judge.candidates import IMPORTS, KERNEL

TASK = load_task("vector_add")
LAUNCH = """
def launch(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

"""


def report_of(source: str, allowed: tuple[str, ...] = ()):
    module = IMPORTS + "import math\nimport torch.nn.functional as F\n" + KERNEL + LAUNCH
    task = msgspec.structs.replace(TASK, allowed_operators=allowed)
    return inspect_source(module + textwrap.dedent(source), task)


FALLBACKS = {
    "on the CPU": """
        def vector_add(x, y):
            if not x.is_cuda:
                return torch.add(x, y)
            return launch(x, y)
    """,
    "by a sign": """
        def vector_add(x, y):
            if x.requires_grad:
                return x + y
            return launch(x, y)
    """,
    "after an exception": """
        def vector_add(x, y):
            try:
                out = launch(x, y)
            except Exception:
                out = torch.add(x, y).to(x.dtype)
            return out
    """,
    "in a function": """
        def plain(a, b):
            return F.softmax(a @ b, dim=-1)

        def vector_add(x, y):
            return launch(x, y) if x.numel() < 1024 else plain(x, y)
    """,
    "behind an early return": """
        def vector_add(x, y, fast=True):
            if fast:
                return launch(x, y)
            total = x.clone()
            return total.add_(y)
    """,
    "into zeros": """
        def vector_add(x, y):
            if x.dim() > 2:
                return x * 0 + y * 1.0
            return launch(x, y)
    """,
    "into an output": """
        def vector_add(x, y):
            out = launch(x, y)
            if x.dim() > 2:
                torch.add(x, y, out=out)
            return out
    """,
    "behind a name that a call binds": """
        FAST = True

        def vector_add(x, y):
            global FAST
            if not FAST:
                return torch.add(x, y)
            FAST = x.numel() < 1 << 20
            return launch(x, y)
    """,
    "behind a parameter named like a constant": """
        FAST = True

        def vector_add(x, y, FAST=True):
            return launch(x, y) if FAST else torch.add(x, y)
    """,
    "behind a list that calls fill": """
        CALLS = []

        def vector_add(x, y):
            if CALLS:
                return torch.add(x, y)
            return launch(x, y)
    """,
    "in an autograd function": """
        class Add(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                if x.dim() > 2:
                    return x.add(y).contiguous()
                return launch(x, y)

        def vector_add(x, y):
            return Add.apply(x, y)
    """,
}

HONEST = {
    "checks that raise": """
        def vector_add(x, y):
            if x.dtype not in (torch.float16, torch.float32) or not torch.allclose(x.sum(), x.sum()):
                raise TypeError(f"no kernel for {x.dtype}")
            assert x.is_cuda and x.shape == y.shape
            return launch(x, y)
    """,
    "numbers": """
        def width(n, scale=None):
            if n > 128:
                return math.sqrt(n) * math.log2(max(n, 2))
            return n ** -0.5 if scale is None else scale * n

        def vector_add(x, y):
            width(x.numel())
            return launch(x, y)
    """,
    "allocations, views, copies and casts": """
        def vector_add(x, y):
            if x.numel() == 0:
                return torch.zeros_like(x)
            if not x.is_contiguous():
                x = x.contiguous()
            if x.dim() > 1:
                return launch(x.reshape(-1), y.flatten()).view(x.shape).to(x.dtype)
            return launch(x, y)
    """,
    "an allocation as a product with zero": """
        def vector_add(x, y, out=None, scale=1.0):
            if out is None:
                out = x * 0
            add_kernel[(1,)](x, y, out, x.numel(), BLOCK=1024)
            return out if scale == 1.0 else out * scale
    """,
    "operators on kernel outputs": """
        def vector_add(x, y, reduction="none"):
            out = torch.empty_like(x)
            add_kernel[(1,)](x, y, out, x.numel(), BLOCK=1024)
            total = launch(x, y)
            if reduction == "mean":
                return out.mean()
            return out + total if reduction == "sum" else out
    """,
    "operators on kernel inputs": """
        def places(lengths):
            if lengths is None:
                return torch.cumsum(lengths, 0)
            return lengths

        def vector_add(x, y, lengths=None):
            if lengths is not None:
                lengths = places(lengths)
                y = y.masked_fill(lengths, 0.0)
            return launch(x, y)
    """,
    "a constant of the module": """
        try:
            import triton.language.extra.libdevice
            HAS_TRITON = True
        except ImportError:
            HAS_TRITON = False

        def vector_add(x, y):
            if not HAS_TRITON:
                return torch.add(x, y)
            return launch(x, y)
    """,
    "gradients and references": """
        class Add(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return launch(x, y)

            @staticmethod
            def backward(ctx, gradient):
                if ctx.needs_input_grad[0]:
                    return gradient.sum(0), gradient @ gradient
                return None, None

        @torch.compile
        def reference(x, y):
            return torch.add(x, y) if x.is_cuda else x + y

        def vector_add(x, y):
            return Add.apply(x, y)
    """,
}


@pytest.mark.parametrize("source", FALLBACKS.values(), ids=FALLBACKS)
def test_fallback_is_refused_with_line(source: str) -> None:
    report = report_of(source)
    assert conclude(report.error) is Verdict.REJECTED
    assert (report.error.kind, report.error.line is not None) == ("operator", True)
    assert "fallback" in report.error.message


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_torch_operators_pass(source: str) -> None:
    report = report_of(source)
    assert report.error is None, report.error


def test_operator_that_task_allows_is_no_fallback() -> None:
    assert report_of(FALLBACKS["on the CPU"], allowed=("add",)).error is None
    assert report_of(FALLBACKS["by a sign"], allowed=("aten.add",)).error is None
