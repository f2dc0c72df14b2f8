"""Protects bfloat16 arithmetic in the interpreter: every operation gives torch's values, and an element counts two bytes."""

from __future__ import annotations

import pytest

from tests.support.drivers import drive

pytestmark = pytest.mark.judge


def test_each_operation_rounds_as_torch() -> None:
    same = drive("round_bfloat16.py")
    assert len(same) == 24
    assert [operation for operation, is_same in same.items() if not is_same] == []
