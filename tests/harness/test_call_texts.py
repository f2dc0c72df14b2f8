"""Protects the text that makes recorded calls: a tensor where the reference returns a tuple is named as such."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.recording.call_texts import adapter
from harness.wire.script_messages import ADAPTER, OutputData, RecordedCall, TensorData


def made_call(*paths: str) -> Any:
    data = TensorData("float32", (3, 4), (4, 1), b"")
    outputs = tuple(OutputData("out", path, data) for path in paths)
    space: dict[str, Any] = {"double": lambda x: x}
    exec(adapter((RecordedCall("double(x)", {"x": data}, outputs),)), space)  # noqa: S102 (our own text)
    return space[ADAPTER]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("result[0]",), "a tuple of 1 tensor"),
        (("result[0]", "result[1][0]", "result[1][1]"), "a tuple of 2 tensors"),
    ],
)
def test_tensor_instead_of_tuple_is_named(paths: tuple[str, ...], expected: str) -> None:
    with pytest.raises(TypeError, match=f"returned a tensor, expected {expected}$"):
        made_call(*paths)(1, x=torch.ones(3, 4))


def test_tuple_and_tensor_are_passed_on() -> None:
    x = torch.ones(3, 4)
    assert made_call("result")(1, x=x) is x
    assert torch.equal(made_call("result[0]")(1, x=(x,)), x)
