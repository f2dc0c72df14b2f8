"""Protects bfloat16 arithmetic in the interpreter: every operation gives torch's values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.drivers import drive

pytestmark = pytest.mark.judge

OPERATIONS = (
    "add", "sub", "mul", "div", "neg", "where", "maximum", "minimum", "abs", "cast", "affine", "scaled", "bitcast",
    "exp", "store", "full", "masked", "from_int", "from_fp16", "back", "values", "rounding", "nans",
)  # fmt: skip


@pytest.fixture(scope="module")
def same() -> Any:
    return drive("round_bfloat16.py")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_rounds_as_torch(same: Any, operation: str) -> None:
    assert same[operation] is True


def test_element_counts_two_bytes(same: Any) -> None:
    assert same["bytes"] is True
