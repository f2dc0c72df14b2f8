"""Constants that Triton's cache takes for one."""

from __future__ import annotations

import math

import pytest

from harness.worker.serving.records import Constexpr, Function, FunctionNotes, Items, Launch, Value, View
from harness.worker.verifier.same_key import LaunchKeys

KERNEL = Function(name="kernel", line=3)
FP16, FP32 = (
    View(storage=0, dtype=name, shape=(4,), strides=(1,), offset=0) for name in ("float16", "float32")
)


def mixed(*given: tuple[View, Value], name: str = "C") -> bool:
    keys = LaunchKeys()
    notes = FunctionNotes(function=KERNEL, names={}, constexprs=("C",), defaults=())
    found = [
        keys.mixes(Launch(KERNEL, (1, 1, 1), {"x": tensor, name: value}, {}), (notes,))
        for tensor, value in given
    ]
    return found[-1] is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (1, Constexpr(value=1.0)),
        (Items(items=(1, 2)), Items(items=(1, 2.0))),
        (math.nan, -math.nan),
    ],
)
def test_equal_constants_of_other_types_or_signs_are_one_key(first: Value, second: Value) -> None:
    assert mixed((FP32, first), (FP32, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2),
        (1, 1),
        (1, Constexpr(value=1)),
        (0.5, 0.5),
        (True, False),
        (None, 0),
        ("1", 1),
        (math.nan, math.nan),
    ],
)
def test_other_constants_are_told_apart(first: Value, second: Value) -> None:
    assert not mixed((FP32, first), (FP32, second))


def test_launches_with_tensors_of_another_dtype_share_no_key() -> None:
    assert not mixed((FP16, 1), (FP32, 1.0))


def test_an_argument_that_is_no_constant_may_be_of_any_type() -> None:
    assert not mixed((FP32, 1), (FP32, 1.0), name="n")


def test_a_global_constant_that_changes_its_sign_counts_as_unchanged() -> None:
    keys = LaunchKeys()
    launch = Launch(KERNEL, (1, 1, 1), {}, {})
    for value, told in ((0.0, False), (-0.0, True)):
        notes = FunctionNotes(
            function=KERNEL, names={"ZERO": Constexpr(value=value)}, constexprs=(), defaults=()
        )
        assert (keys.mixes(launch, (notes,)) is not None) == told
