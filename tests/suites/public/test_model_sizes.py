"""Smaller sizes of a module's inputs: which integers change, and which relations stay."""

from __future__ import annotations

from typing import Any

import pytest

from suites.public.syntax.model_sizes import (
    OWN,
    Odd,
    Shrinking,
    capped_size,
    divided_size,
    first_call,
    input_statements,
    largest_size,
)

CAP = Shrinking(cap=64)
TEXT = """\
import torch

class Model:
    width = 1024

batch_size = 1024 * 2
in_channels = 384
height, width = 224, 224
num_groups = 48
kernel_size = 11
stride = 2
groups = in_channels
ignored = -100

def get_inputs():
    return [rand(batch_size, in_channels, height, width, 512), torch.rand]

def get_init_inputs():
    return [in_channels, kernel_size, groups, num_groups]
"""


def sizes(shrinking: Shrinking, odd: Odd = Odd.NONE) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(  # noqa: S102 -- our own text
        input_statements(TEXT.replace(", torch.rand", ""), shrinking, odd),
        {"rand": lambda *sizes: sizes},
        namespace,
    )
    return namespace


def test_sizes_shrink_together_and_settings_stay() -> None:
    made = sizes(CAP)
    assert (made["batch_size"], made["in_channels"], made["groups"], made["height"]) == (64, 48, 48, 56)
    assert (made["kernel_size"], made["stride"], made["ignored"]) == (11, 2, -100)
    assert made["in_channels"] % made["num_groups"] == 0
    assert made["num_groups"] < made["in_channels"], "a group keeps several channels"
    assert "class" not in input_statements(TEXT, CAP)
    assert largest_size(TEXT) == 2048


def test_odd_sizes_leave_the_constructor_alone_if_asked() -> None:
    for odd, channels in ((Odd.INPUTS, 48), (Odd.ALL, 47)):
        made = sizes(CAP, odd)
        assert (made["batch_size"], made["height"], made["in_channels"]) == (63, 55, channels)
        assert made["groups"] == channels
        assert made["num_groups"] == 12


def test_normal_inputs_only_where_inputs_are_drawn() -> None:
    text = "weight = torch.rand\n" + TEXT
    assert input_statements(text, CAP, normal=True).count("torch.randn") == 1


@pytest.mark.parametrize(
    ("size", "cap", "smaller"), [(64, 64, 64), (393216, 64, 48), (4095, 64, 13), (65537, 64, 63)]
)
def test_a_smaller_size_keeps_common_divisors(size: int, cap: int, smaller: int) -> None:
    assert capped_size(size, cap) == smaller


def test_divided_sizes_keep_their_ratio() -> None:
    made = sizes(Shrinking(divisor=8))
    assert (made["batch_size"], made["in_channels"], made["height"], made["num_groups"]) == (256, 48, 28, 6)
    assert (divided_size(12, 16), divided_size(255, 16), divided_size(16, 16)) == (3, 255, 2)


def test_own_sizes_stay_and_a_smaller_batch_changes_no_other_size() -> None:
    own, made = sizes(OWN), sizes(Shrinking(batch=64))
    assert (own["batch_size"], own["in_channels"], own["height"], own["num_groups"]) == (2048, 384, 224, 48)
    assert made["batch_size"] == 64
    assert {name for name in ("in_channels", "height", "num_groups") if made[name] != own[name]} == set()


def test_statements_up_to_the_first_call() -> None:
    calls = "size = {}\nwith no_grad():\n    call(size)\n"
    assert first_call(calls.format(9) + calls.format(10)) == calls.format(9)
