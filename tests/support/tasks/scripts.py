"""A small public benchmark of our own: references with tests that call them, and wrong variants."""

from __future__ import annotations

from pathlib import Path

from harness import DevicePool, target
from harness.recording.recorder import record_task
from harness.recording.references import ReferenceResult, judge_reference
from suites import Task
from suites.public.syntax.calls import test_calls
from suites.public.task import (
    EntryKind,
    Part,
    PublicEntryPoint,
    PublicTask,
    ReferenceKind,
    SuiteKind,
    TestForm,
)

HEADER = """import torch
import triton
import triton.language as tl
"""

SCALE = (
    HEADER
    + """

@triton.jit
def scale_kernel(x_ptr, out_ptr, count, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


def launch(x, out, factor):
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), factor, BLOCK=64)


def scale(x, factor=2.0):
    out = torch.empty_like(x)
    launch(x, out, factor)
    return out


def scale_into(x, out, factor):
    launch(x, out, factor)


def scale_noise(count):
    x = torch.randn(count, device="cuda")
    return scale(x, 3.0)


def scale_some(x, keys):
    out = torch.empty(x.numel() + 8, dtype=x.dtype, device=x.device)
    launch(x, out, keys["factor"])
    return {"out": out, "count": x.numel(), "nothing": None}


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scale(x, 2.0)

    @staticmethod
    def backward(ctx, grad):
        return scale(grad.contiguous(), 2.0)


def differentiable(x):
    return Scaled.apply(x)


class Scaler:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return scale(x, 2.0) if self.weight is None else scale(x * self.weight)
"""
)

TEST = """
def test_scale():
    torch.manual_seed(0)
    results = {}
    x = torch.randn(100, device="cuda")
    results["plain"] = scale(x)
    results["again"] = scale(torch.randn(100, device="cuda"))
    results["keyword"] = scale(torch.randn(7, 9, device="cuda").t(), factor=0.5)
    out = torch.zeros(100, device="cuda")
    scale_into(x, out, 4.0)
    results["in_place"] = out
    results["random"] = scale_noise(50)
    results["unwritten"] = scale_some(x, {"factor": 1.5})["out"]
    z = torch.randn(10, device="cuda", requires_grad=True)
    differentiable(z).sum().backward()
    results["gradient"] = z.grad
    results["object"] = Scaler(torch.ones(100, device="cuda"))(x)
    made = torch.empty(64, device="cuda")
    scale_kernel[(1,)](x, made, 64, 5.0, BLOCK=64)
    results["kernel"] = made
    return results


result_gold = test_scale()
"""


PYTEST = """
import pytest
from numpy.random import RandomState


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setenv("SCALE_DEVICE", "cuda")
    return "cuda"


@pytest.mark.parametrize("count", [7, 70])
@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_scale(count, factor, device, request):
    assert request.node.name == f"test_scale[{factor}-{count}]"
    x = torch.from_numpy(RandomState(17).randn(count)).float().to(device)
    y = torch.empty_like(x)
    scale_into(x, y, factor)
    assert factor == 0.5, "the other nodes go on"


@pytest.mark.skip(reason="not here")
def test_skipped():
    scale(torch.ones(1, device="cuda"))


def test_without_calls():
    pass


def test_performance():
    scale(torch.ones(2, device="cuda"))


def test_save_results():
    scale(torch.ones(3, device="cuda"))
"""

PROGRAM = """
import sys

from kernel import scale

def run_correctness(counts):
    import torch

    for count in counts:
        try:
            generator = torch.Generator(device="cuda").manual_seed(3)
            scale(torch.randn(count, device="cuda", generator=generator))
        except Exception:
            print("failed")


if __name__ == "__main__":
    assert sys.argv[1:] == ["--correctness"]
    run_correctness(range(1, 1000))
    sys.exit(0)
"""


def public_task(
    reference: str, test: str, folder: Path, name: str = "scale", form: TestForm = TestForm.SCRIPT
) -> PublicTask:
    """A task as the loaders make it from a file with a reference and a test."""
    calls = test_calls(reference, test, form, "kernel" if form is TestForm.RUNNER else name)
    return PublicTask(
        suite="mine",
        kind=SuiteKind.TRITONBENCH_REVISED,
        name=name,
        file=f"{name}.py",
        title=name,
        folder=folder,
        instruction="Multiply by a factor.",
        entry_points=calls.entry_points,
        reference=Part(folder / f"{name}.py", reference),
        test=Part(folder / f"{name}.py", calls.test),
        test_form=form,
        result_name=calls.result_name,
        modules=calls.modules,
    )


def model_task(reference: str, folder: Path, name: str, made: str) -> PublicTask:
    """A task as the loader of KernelBench makes it; `made` is the expression that makes a candidate's model."""
    return PublicTask(
        suite="mine",
        kind=SuiteKind.KERNELBENCH,
        name=name,
        file=f"{name}.py",
        title=name,
        folder=folder,
        instruction="Scale and shift.",
        entry_points=(PublicEntryPoint("ModelNew", EntryKind.CLASS, made),),
        reference=Part(folder / f"{name}.py", reference),
        reference_kind=ReferenceKind.MODULE,
        test_form=TestForm.MODEL,
    )


async def record(pool: DevicePool, public: PublicTask) -> Task:
    """Record a task in its folder, for gfx942."""
    folder = public.folder / public.name
    return await record_task(public, folder, pool=pool, target=target("gfx942"))


async def judge_recorded(pool: DevicePool, public: PublicTask) -> ReferenceResult:
    """Record a task and judge its reference, for gfx942."""
    registry = public.folder / "suites.toml"
    return await judge_reference(public, registry, pool=pool, target=target("gfx942"))
