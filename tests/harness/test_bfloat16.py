"""bfloat16 in the interpreter: every operation, bit for bit as torch has it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.driving import drive

pytestmark = pytest.mark.judge

OPERATIONS = (
    "add", "sub", "mul", "div", "neg", "where", "maximum", "minimum", "abs", "cast", "affine", "scaled", "bitcast",
    "exp", "store", "full", "masked", "from_int", "from_fp16", "back", "values", "rounding", "nans",
)  # fmt: skip


@pytest.fixture(scope="module")
def same() -> Any:
    return drive("narrowing.py")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_rounds_as_torch_does(same: Any, operation: str) -> None:
    assert same[operation] is True


def test_bytes_in_memory_are_counted_as_two(same: Any) -> None:
    assert same["bytes"] is True
