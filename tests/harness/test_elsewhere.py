"""Another device's arithmetic: what devices differ in is another value there, what they agree in is not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.harness.driving import drive

pytestmark = pytest.mark.judge

OTHER = (
    "a product and a sum",
    "a product in another shape and a sum",
    "a negated product and a sum",
    "a quotient",
    "a root",
    "powers",
    "a library's tanh",
    "a sum",
    "a running sum",
    "a running sum back",
    "a scan that does not commute",
    "a dot",
)
"""What rounds."""
ALIKE = (
    "the same product twice",
    "a fused product and sum",
    "what fma keeps",
    "an exact quotient",
    "a rounded quotient",
    "a quotient in double",
    "an exact root",
    "a rounded root",
    "exact powers",
    "powers without a number",
    "a library's tanh of large ones",
    "a library's floor",
    "an exact sum",
    "whole numbers in order",
    "a magic number",
    "what a sum loses",
)
"""What is exact, or rounded by a rule."""
ASKED = ("neighbours with neighbours", "powers of two of products")


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("rounding.py", *OTHER, *ALIKE, *ASKED)


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=2e-6, abs_tol=2e-6)


@pytest.mark.parametrize("what", OTHER)
def test_what_rounds_is_another_number_close_by(seen: Any, what: str) -> None:
    here, elsewhere = seen[what]["here"], seen[what]["elsewhere"]
    assert here != elsewhere
    assert all(map(close, here, elsewhere))


@pytest.mark.parametrize("what", ALIKE)
def test_what_is_exact_or_rounded_by_a_rule_is_the_same(seen: Any, what: str) -> None:
    assert str(seen[what]["here"]) == str(seen[what]["elsewhere"])


def test_half_of_the_inexact_results_are_others_and_not_the_same_half_on_each_device(seen: Any) -> None:
    roots = seen["a root"]
    moved = [
        [here != there for here, there in zip(roots["here"], roots[where], strict=True)]
        for where in ("elsewhere", "far")
    ]
    assert all(64 / 4 < sum(one) < 64 * 3 / 4 for one in moved)
    assert moved[0] != moved[1]


def test_a_product_is_fused_with_a_sum_unless_the_launch_forbids_it(seen: Any) -> None:
    fused = seen["a fused product and sum"]["here"]
    for what in ("a product and a sum", "a product in another shape and a sum"):
        assert seen[what]["elsewhere"] == fused
        assert seen[what]["unfused"] == seen[what]["here"] != fused


def test_fma_rounds_once_everywhere(seen: Any) -> None:
    assert any(seen["what fma keeps"]["here"])


def test_a_power_of_e_is_one_of_two_elsewhere(seen: Any) -> None:
    assert seen["powers"]["elsewhere"] == seen["powers of two of products"]["elsewhere"]
    assert seen["powers"]["here"] != seen["powers of two of products"]["here"]


def test_a_reduction_keeps_no_order_elsewhere(seen: Any) -> None:
    assert set(seen["neighbours with neighbours"]["here"]) == {1.0}
    assert set(seen["neighbours with neighbours"]["elsewhere"]) == {0.0}
