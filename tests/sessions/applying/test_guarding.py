"""A guard: the kernel where it was measured as faster, the original everywhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sessions.applying.guarding import guarded
from sessions.applying.merging import merge
from sessions.applying.placing import Home, merge_files
from sessions.errors import NotApplicable

ORIGINAL = '''\
"""Ops."""

import math

import torch

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


def reference(x):
    return 2 * x
'''
KERNEL = '''\
"""Faster."""

import json
import operator

BLOCK = 128
LIMIT = 8
OPTIONS = triton.Config({})
REGISTERED = operator.add(1, 1)


def kernel(x, *, BLOCK_N):
    return "new", min(BLOCK_N, 16 * LIMIT)


def launch(x, **options):
    return kernel(x, **options)


def double(x, scale=3.0):
    return launch(x, BLOCK_N=BLOCK)


def reference(x):
    return json.dumps(x) * BLOCK
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


def test_only_what_the_entry_point_reaches_goes_into_the_file() -> None:
    home = Home("ops.py", ORIGINAL)
    for kernel in (KERNEL, guarded([home], KERNEL, "double", CASES, "gfx942")):
        text = merge_files([home], kernel, ["double"])["ops.py"]
        assert text.endswith("\n\n\ndef reference(x):\n    return 2 * x\n")
        assert not any(name in text for name in ("reference_tuned", "OPTIONS", "json"))
        # It may do more than define a name.
        assert "REGISTERED = operator.add(1, 1)" in text
        imports = text.partition("\n\nimport torch\n")[0].splitlines()[2:]
        assert imports[0] == "import math"
        assert "import operator" in imports
    one_line = KERNEL.replace("BLOCK = 128\n", "BLOCK = 128; UNUSED = 1\n")
    assert "\nBLOCK = 128\n" in merge_files([home], one_line, ["double"])["ops.py"]


def test_guard_that_is_no_simple_change_is_left_to_a_person() -> None:
    shadowed = KERNEL.replace("def double(x, scale=3.0):\n", "def double(x, scale=3.0):\n    BLOCK = 1\n")
    with pytest.raises(NotApplicable, match="uses `BLOCK` for something inside of a function"):
        guarded([Home("ops.py", ORIGINAL)], shadowed, "double", CASES, "gfx942")
    decorated = ORIGINAL.replace("# Doubles.\n", "@register\n")
    with pytest.raises(NotApplicable, match="no plain function without decorators"):
        guarded([Home("ops.py", decorated)], KERNEL, "double", CASES, "gfx942")
