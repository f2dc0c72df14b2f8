"""A guard: the kernel where it was measured as faster, the original everywhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sessions.applying.guarding import Guard, faster_condition, find_dimension, guarded
from sessions.applying.merging import merge
from sessions.applying.placing import HomeFile, merge_files
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
GUARD = Guard("x", "x.ndim == 2 and (16 <= x.shape[0] <= 512 or x.shape[0] == 4096)", "gfx942")


class Tensor:
    """A tensor of the fake torch."""

    def __init__(self, *shape: int, device: str = "gfx942:sramecc+") -> None:
        self.shape, self.ndim, self.device, self.is_cuda = shape, len(shape), device, device != "cpu"


def module(text: str) -> dict[str, Any]:
    """Run the text with a fake torch, which names devices by their architecture."""
    cuda = SimpleNamespace(get_device_properties=lambda device: SimpleNamespace(gcnArchName=device))
    names: dict[str, Any] = {
        "torch": SimpleNamespace(Tensor=Tensor, cuda=cuda, version=SimpleNamespace(hip="7.0"))
    }
    exec(text.replace("import torch\n", ""), names)  # noqa: S102 -- the test's own text
    return names


def test_ranges_are_runs_of_faster_sizes_and_a_size_needs_all_of_its_cases() -> None:
    measured = [(8192, True), (16, True), (1, False), (512, True), (4096, True), (1024, False), (4096, False)]
    assert faster_condition("x.shape[0]", measured) == "16 <= x.shape[0] <= 512 or x.shape[0] == 8192"
    assert faster_condition("x.shape[0]", [(1, False)]) == ""


def test_size_is_a_dimension_only_if_one_alone_has_it_in_each_case() -> None:
    square = ({"a": (64, 64), "b": (64, 8), "c": (64, 64)}, 64)
    assert find_dimension([square]) == ("b", 0, 2)
    assert find_dimension([square, ({"a": (16, 32), "b": (32, 8)}, 32)]) == ("a", 1, 2)
    assert find_dimension([square, ({"a": (32,), "b": (16, 8), "c": (32, 32)}, 32)]) == ("", 0, 0)


def test_kernel_runs_in_the_ranges_and_on_the_device_where_it_was_faster() -> None:
    text = merge(ORIGINAL, guarded([HomeFile("ops.py", ORIGINAL)], KERNEL, "double", GUARD), ["double"])
    double = module(text)["double"]
    for rows in (16, 17, 512, 4096):
        assert double(Tensor(rows, 8192)) == ("new", 128)
    for tensor in (
        *(Tensor(rows, 8192) for rows in (0, 15, 513, 4097)),
        Tensor(16, 16, 8192),
        Tensor(16, 8192, device="gfx950"),
        Tensor(16, 8192, device="cpu"),
    ):
        assert double(tensor) == ("old", 64)
    assert module(text)["twice"]
    assert text.count("LIMIT = 8") == 1
    for kept in ("# Doubles.", 'return "old", BLOCK', "def double(x, scale=math.pi):"):
        assert kept in text


def test_only_what_the_entry_point_reaches_goes_into_the_file() -> None:
    home = HomeFile("ops.py", ORIGINAL)
    for kernel in (KERNEL, guarded([home], KERNEL, "double", GUARD)):
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
        guarded([HomeFile("ops.py", ORIGINAL)], shadowed, "double", GUARD)
    decorated = ORIGINAL.replace("# Doubles.\n", "@register\n")
    with pytest.raises(NotApplicable, match="no plain function without decorators"):
        guarded([HomeFile("ops.py", decorated)], KERNEL, "double", GUARD)
