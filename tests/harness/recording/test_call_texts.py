"""Protects the text that makes recorded calls: a tensor where the reference returns a tuple is named as such."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from harness.recording.call_texts import adapter
from harness.recording.model_scripts import for_cuda
from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import ADAPTER, RecordedCall, RecordedOutput

PAIR = ("result[0]", "result[1][0]", "result[1][1]")
X = torch.ones(3, 4)
CONFIG = (
    "configs = [triton.Config({'BLOCK': 16, 'waves_per_eu': 2, 'kpack': k}, num_warps=4) for k in (1, 2)]"
)


def made_call(*paths: str, returns: str = "") -> Any:
    data = TensorSpec("float32", (3, 4), (4, 1), b"")
    outputs = tuple(RecordedOutput("out", path, data) for path in paths)
    space: dict[str, Any] = {"double": lambda x: x}
    call = RecordedCall("double(x)", {"x": data}, outputs, returns=returns)
    exec(adapter((call,)), space)  # noqa: S102 (our own text)
    return space[ADAPTER]


@pytest.mark.parametrize(
    ("paths", "returns", "value", "problem"),
    [
        (("result[0]",), "a tuple of 1: float32[3, 4]", X, "expected a tuple of 1 tensor, got a tensor"),
        (PAIR, "", X, "expected a tuple of 2 tensors, got a tensor"),
        (PAIR, "", None, "expected a tuple of 2 tensors, got None (no return statement?)"),
        (PAIR, "", 1, "expected a tuple of 2 tensors, got an int"),
        (PAIR, "", [X], "expected a tuple of 2 tensors, got a list of 1 tensor"),
        (
            ("result[0]",),
            "a tuple of 2: float32[3, 4], `x` itself",
            X,
            "expected a tuple of 2: float32[3, 4], `x` itself, got a tensor",
        ),
        (
            ("result['y']",),
            "a dict: {'y': float32[3, 4]}",
            (X, 1),
            "expected a dict: {'y': float32[3, 4]}, got a tuple of 2 values",
        ),
        (("result['y']",), "a dict: {'y': float32[3, 4]}", {"z": X}, "got a dict with the keys 'z'"),
    ],
)
def test_result_of_another_structure_is_named(
    paths: tuple[str, ...], returns: str, value: object, problem: str
) -> None:
    with pytest.raises(TypeError, match=f"{re.escape(problem)}$"):
        made_call(*paths, returns=returns)(1, x=value)


def test_tuple_tensor_and_dictionary_are_passed_on() -> None:
    assert made_call("result")(1, x=X) is X
    assert torch.equal(made_call("result[0]")(1, x=(X,)), X)
    assert torch.equal(made_call("result['y']")(1, x={"y": X}), X)


def test_launches_and_configs_lose_the_options_of_amd() -> None:
    text = for_cuda(
        f"{CONFIG}\nkernel[grid](x, BLOCK=16, matrix_instr_nonkdim=16)\nsettings = {{'kpack': 1}}\n"
    )
    assert text == (
        "configs = [triton.Config({'BLOCK': 16}, num_warps=4) for k in (1, 2)]\n"
        "kernel[grid](x, BLOCK=16)\nsettings = {'kpack': 1}"
    )


def test_a_parameter_with_the_name_of_an_option_stays() -> None:
    text = f"@triton.jit\ndef kernel(x, waves_per_eu: tl.constexpr):  # a comment\n    pass\n{CONFIG}\n"
    assert "'waves_per_eu': 2" in for_cuda(text)
    plain = "y = x.kpack  # a comment\n"
    assert for_cuda(plain) == plain
