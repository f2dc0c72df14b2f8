"""Which readings of a call's inputs leave a replay its worth."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from harness.worker.judge.cases import JudgedCase
from harness.worker.judge.host_reads import leaves_the_work, with_elements_read
from harness.worker.judge.vault import Given
from harness.worker.serving.records import HostRead, Record, View
from suites import load_task

pytestmark = pytest.mark.judge
COUNT = 1000
PLACES = range(1, 4)


def vector(seed: int, count: int = COUNT) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def given(x: torch.Tensor, y: torch.Tensor) -> Given:
    case = JudgedCase(load_task("vector_add").cases[0])
    return Given(cast(Any, None), case, {"x": x, "y": y}, (x.double() + y.double(),))


def record(*reads: tuple[int, int, int]) -> Record:
    """Of `x` (0) and `y` (1): storage, first element, how many."""
    steps = tuple(
        HostRead(View(storage, "float32", (count,), (1,), first), b"") for storage, first, count in reads
    )
    return Record(inputs={"x": 0, "y": 1}, steps=steps, functions=(), returned=())


def is_proof(made: Record, count: int = COUNT) -> bool:
    called = given(vector(0, count), vector(100, count))
    others = [given(vector(place, count), vector(100 + place, count)) for place in PLACES]
    pairs = []
    for other in others:
        kept = with_elements_read(made, called, other)
        pairs.append(
            (given(cast(torch.Tensor, kept.inputs["x"]), cast(torch.Tensor, kept.inputs["y"])), other)
        )
    return leaves_the_work(made, load_task("vector_add"), called, pairs)


@pytest.mark.parametrize(
    "reads",
    [[(0, 0, 1)], [(0, 0, 8), (1, 100, 8)], [(0, 7, 1)] * 50],
    ids=["one element", "elements of two inputs", "one many times"],
)
def test_a_few_elements_that_no_answer_hangs_on_alone(reads: list[tuple[int, int, int]]) -> None:
    assert is_proof(record(*reads))


@pytest.mark.parametrize(
    "reads",
    [[(0, 0, COUNT), (1, 0, COUNT)], [(0, 3, 1), (1, 3, 1)], [(0, 0, COUNT // 2)]],
    ids=["everything", "both parts of one answer", "half of the fractions"],
)
def test_what_an_answer_can_be_worked_out_of(reads: list[tuple[int, int, int]]) -> None:
    assert not is_proof(record(*reads))


def test_a_lone_element_is_a_scale_where_the_answer_hangs_on_more() -> None:
    assert is_proof(record((1, 0, 1)), count=1)
    assert not is_proof(record((0, 0, 1), (1, 0, 1)), count=1)


def test_what_was_read_is_kept_and_nothing_else() -> None:
    called, other = given(vector(0), vector(1)), given(vector(2), vector(3))
    kept = with_elements_read(record((0, 5, 2)), called, other).inputs
    x, y = cast(torch.Tensor, kept["x"]), cast(torch.Tensor, kept["y"])
    assert torch.equal(x[5:7], vector(0)[5:7])
    assert torch.equal(torch.cat([x[:5], x[7:]]), torch.cat([vector(2)[:5], vector(2)[7:]]))
    assert torch.equal(y, vector(3))


def test_a_reading_that_no_honest_record_can_hold_costs_nothing() -> None:
    forged = HostRead(View(0, "float32", (1 << 40,), (0,), 0), b"")
    made = Record(inputs={"x": 0, "y": 1}, steps=(forged,), functions=(), returned=())
    called, other = given(vector(0), vector(1)), given(vector(2), vector(3))
    assert with_elements_read(made, called, other).inputs == other.inputs
