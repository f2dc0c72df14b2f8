"""A guard: the kernel where it was measured as faster, the original everywhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sessions.applying.guarding import guarded
from sessions.applying.merging import merge
from sessions.applying.placing import Home
from sessions.errors import NotApplicable

ORIGINAL = '''\
"""Ops."""

import math

BLOCK = 64
LIMIT = 8


def kernel(x):
    return "old", BLOCK


def launch(x, **options):
    return kernel(x, **options)


# Doubles.
def double(x, scale=math.pi):
    return launch(x)


def twice(x):
    return double(double(x))
'''
KERNEL = '''\
"""Faster."""

BLOCK = 128
LIMIT = 8


def kernel(x, *, BLOCK_N):
    return "new", min(BLOCK_N, 16 * LIMIT)


def launch(x, **options):
    return kernel(x, **options)


def double(x, scale=3.0):
    return launch(x, BLOCK_N=BLOCK)
'''
CASES = {"large": {"x": ((4096, 8192), "float16")}}


class Tensor:
    """A tensor of the fake torch."""

    def __init__(
        self, shape: tuple[int, ...], dtype: str = "torch.float16", device: str = "gfx942:sramecc+"
    ) -> None:
        self.shape, self.dtype, self.device, self.is_cuda = shape, dtype, device, device != "cpu"


def module(text: str) -> dict[str, Any]:
    """Run the text with a fake torch, which names devices by their architecture."""
    cuda = SimpleNamespace(get_device_properties=lambda device: SimpleNamespace(gcnArchName=device))
    names: dict[str, Any] = {
        "torch": SimpleNamespace(Tensor=Tensor, cuda=cuda, version=SimpleNamespace(hip="7.0"))
    }
    exec(text.replace("import torch\n", ""), names)  # noqa: S102 -- the test's own text
    return names


def test_kernel_runs_at_the_shapes_and_on_the_device_where_it_was_faster() -> None:
    text = merge(ORIGINAL, guarded([Home("ops.py", ORIGINAL)], KERNEL, "double", CASES, "gfx942"), ["double"])
    double = module(text)["double"]
    assert double(Tensor((4096, 8192))) == ("new", 128)
    for tensor in (
        Tensor((4096, 4096)),
        Tensor((4096, 8192), "torch.float32"),
        Tensor((4096, 8192), device="gfx950"),
        Tensor((4096, 8192), device="cpu"),
    ):
        assert double(tensor) == ("old", 64)
    assert module(text)["twice"]
    assert text.count("LIMIT = 8") == 1
    for kept in ("# Doubles.", 'return "old", BLOCK', "def double(x, scale=math.pi):", "# large"):
        assert kept in text


def test_guard_that_is_no_simple_change_is_left_to_a_person() -> None:
    shadowed = KERNEL.replace("def double(x, scale=3.0):\n", "def double(x, scale=3.0):\n    BLOCK = 1\n")
    with pytest.raises(NotApplicable, match="uses `BLOCK` for something inside of a function"):
        guarded([Home("ops.py", ORIGINAL)], shadowed, "double", CASES, "gfx942")
    decorated = ORIGINAL.replace("# Doubles.\n", "@register\n")
    with pytest.raises(NotApplicable, match="no plain function without decorators"):
        guarded([Home("ops.py", decorated)], KERNEL, "double", CASES, "gfx942")
