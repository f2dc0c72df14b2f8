"""Protects the rule that the host copies no input to an output: counts elements, keeps the order of stores and copies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.worker.guest.watch import OperatorWatch
from harness.worker.interpreter.known_memory import KnownMemory
from harness.worker.interpreter.traffic import Observation

pytestmark = pytest.mark.judge
Call = Callable[[torch.Tensor, Observation], torch.Tensor]


def store(observation: Observation, tensor: torch.Tensor) -> None:
    """Store to a tensor as a kernel does."""
    allocation = observation.origin(tensor).allocation
    first = tensor.data_ptr() - allocation.span.start
    allocation.writes[first : first + tensor.nbytes] = 1


def copied(call: Call) -> int:
    x = torch.arange(12.0).view(3, 4)
    observation = Observation(known=KnownMemory())
    observation.admit({"x": x})
    watch = OperatorWatch(observation, "kernel.py")
    with watch:
        output = call(x, observation)
    assert watch.host_copies is not None
    return watch.host_copies.count(output)


def transposed(x: torch.Tensor, observation: Observation) -> torch.Tensor:
    out = torch.empty(4, 3)
    store(observation, out)
    return out.copy_(x.t())


def one_column(x: torch.Tensor, observation: Observation) -> torch.Tensor:
    out = torch.empty_like(x)
    store(observation, out)
    out[:, 1] = x[:, 1]
    return out.to(torch.float16)


def stored_after_copy(x: torch.Tensor, observation: Observation) -> torch.Tensor:
    out = x.clone()
    store(observation, out[1:])
    return out


def own_results(_: torch.Tensor, observation: Observation) -> torch.Tensor:
    between, out = torch.empty(3), torch.zeros(4)
    store(observation, between)
    out[:3] = between.half()
    out[3] = 7.0
    return out.contiguous().view(2, 2)


def resized(x: torch.Tensor, observation: Observation) -> torch.Tensor:
    out = x.clone()
    store(observation, out)
    out.resize_(2)
    out.untyped_storage().resize_(8)
    return out.copy_(x[0, :2])


@pytest.mark.parametrize(
    ("call", "count"),
    [(transposed, 12), (one_column, 3), (stored_after_copy, 4), (own_results, 0), (resized, 2)],
)
def test_copied_elements_are_counted(call: Call, count: int) -> None:
    assert copied(call) == count


@given(columns=st.lists(st.integers(0, 3), max_size=6), stored=st.integers(0, 2))
def test_each_copied_element_counts_once_until_a_kernel_stores_it(columns: list[int], stored: int) -> None:
    """Rows below `stored` are those that the kernel stores after the copies."""

    def call(x: torch.Tensor, observation: Observation) -> torch.Tensor:
        out = torch.empty_like(x)
        store(observation, out)
        for column in columns:
            out[:, column] = x[:, column]
        if stored:
            store(observation, out[:stored])
        return out

    assert copied(call) == len(set(columns)) * (3 - stored)
