"""Protects variants of hidden inputs (layouts, middle rows, equal tensors), refilled arenas, and the judge's vault of inputs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch

from harness.cases.judged_case import JudgedCase, Layout
from harness.worker.kit import place
from harness.worker.kit.arena import Arena, open_arguments
from harness.worker.oracle.inputs.variants import alike, laid_out, with_other_middle
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Given, Vault
from tests.support.tasks.doubled_task import PROBLEM, write_doubled

pytestmark = pytest.mark.judge

SHAPES = ((5,), (4, 6), (1, 1), (2, 3, 4), (0, 3), ())
DTYPES = (torch.float32, torch.float16, torch.int8, torch.int64)


def unused_is_poison(tensor: torch.Tensor) -> bool:
    """True if all bytes of the storage outside the tensor's elements are 0xFF."""
    if tensor.numel() == 0:
        return True
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    rest = torch.ones(storage.numel(), dtype=torch.bool)
    rest.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).fill_(0)
    return bool((storage[rest].view(torch.uint8) == 0xFF).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", Layout)
def test_layout_matches_its_name_and_keeps_values(
    layout: Layout, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    tensor = torch.arange(torch.Size(shape).numel(), dtype=dtype).reshape(shape)
    laid = laid_out(tensor, layout)
    arena = Arena({"x": laid})
    opened = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)["x"]
    assert torch.equal(laid, tensor)
    assert torch.equal(opened, tensor)
    assert opened.stride() == laid.stride()
    assert unused_is_poison(opened)
    if not shape or not laid.numel():
        assert laid.is_contiguous()
    else:
        assert (opened.storage_offset() > 0) is (layout in ("offset", "unaligned"))
        assert (opened.data_ptr() % 16 == 0) is (layout != "unaligned")
        has_rows = len(shape) > 1
        strided = {"transposed": has_rows, "padded rows": has_rows, "every second element": True}
        assert laid.is_contiguous() is not (strided.get(layout, False) and laid.numel() > 1)
    del opened
    arena.close()


def test_refill_keeps_tensors_and_needs_same_shape_and_dtype() -> None:
    first, second = torch.arange(6.0).reshape(2, 3), torch.arange(6.0, 12.0).reshape(2, 3)
    arena = Arena({"x": first})
    opened = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)["x"]
    version = opened._version
    assert arena.refilled({"x": second})
    assert torch.equal(opened, second)
    assert opened._version == version
    assert arena.changed() == ()
    assert not arena.refilled({"x": torch.zeros(3, 3)})
    assert not arena.refilled({"x": second.double()})
    opened[0, 0] = 7
    assert arena.changed() == ("x",)
    del opened
    arena.close()


def tensor_of(case_inputs: Given) -> torch.Tensor:
    return case_inputs.inputs["x"]


def test_oracle_runs_once_for_each_input_and_vault_is_bounded(tmp_path: Path) -> None:
    counting = PROBLEM.replace("def oracle(x):", "calls = []\n\n\ndef oracle(x):\n    calls.append(1)")
    task = write_doubled(tmp_path, problem=counting)
    problem, case, vault = Problem(task), JudgedCase(task.cases[0]), Vault()
    for _ in range(3):
        for number in range(4):
            _ = vault.given(problem, case, 1, number).expected
    assert len(problem._oracle.__globals__["calls"]) == 4
    draws = [tensor_of(vault.given(problem, case, seed, number)) for seed, number in ((1, 0), (1, 1), (2, 0))]
    assert not any(torch.equal(x, earlier) for number, x in enumerate(draws) for earlier in draws[:number])
    exam = JudgedCase(msgspec.structs.replace(case.case, exam=True))
    assert not torch.equal(problem.given(exam, 1, 0)["x"], draws[0])
    size_bytes = vault.given(problem, case, 1, 0).size_bytes
    small = Vault(capacity_bytes=3 * size_bytes)
    for number in range(4):
        _ = small.given(problem, case, 1, number).expected
    newest = small.given(problem, case, 1, 3)
    assert torch.equal(tensor_of(small.given(problem, case, 1, 0)), draws[0])
    assert small.size_bytes <= 3 * size_bytes
    assert small.given(problem, case, 1, 3) is newest


def test_vault_forgets_hidden_inputs_and_keeps_open_inputs(tmp_path: Path) -> None:
    task = write_doubled(tmp_path)
    problem, vault = Problem(task), Vault()
    open_inputs = vault.given(problem, JudgedCase(task.cases[0]), 1, 0)
    hidden = JudgedCase(task.cases[0], hidden=True)
    hidden_inputs = vault.given(problem, hidden, 1, 1)
    vault.forget_drawn()
    assert vault.given(problem, JudgedCase(task.cases[0]), 1, 0) is open_inputs
    assert vault.given(problem, hidden, 1, 1) is not hidden_inputs


def test_vault_size_depends_on_gpu_memory() -> None:
    small_gpu = 24 << 30
    for judges in (1, 2, 6):
        kept = place.vault_bytes_of(small_gpu, judges) + place.kept_bytes(small_gpu, judges)
        assert judges * kept < small_gpu / 3, "together they leave the memory to guests and timers"
    assert place.vault_bytes_of(140 << 30, 2) > 8 << 30


@pytest.mark.parametrize("kind", ["sorted", "symmetric", "integers"])
def test_structured_inputs_keep_their_middle(kind: str) -> None:
    def make() -> torch.Tensor:
        square = torch.randn(6, 6)
        return {
            "sorted": torch.randn(9).sort().values,
            "symmetric": square @ square.T,
            "integers": torch.randint(9, (6, 6)),
        }[kind]

    x, y = make(), make()
    x = (x + x.T) / 2 if kind == "symmetric" else x
    assert with_other_middle({"x": x}, {"x": y})["x"] is x


def test_alike_inputs_have_equal_shape_and_float_dtype() -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    inputs = {"x": x, "y": y, "wide": x.double(), "turned": x.T, "eps": 1e-5, "at": x.int()}
    assert alike(inputs | {"to": x.int()}) == [("x", "y")]


def test_tensor_under_two_names_is_opened_once() -> None:
    x, y = torch.randn(5), torch.randn(5)
    arena = Arena({"x": x, "again": x, "y": y, "n": 1, "m": 1})
    opened = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)
    assert opened["x"] is opened["again"]
    assert opened["x"].data_ptr() != opened["y"].data_ptr()
    assert (torch.equal(opened["x"], x), torch.equal(opened["y"], y)) == (True, True)
    opened["again"][2] += 1
    assert arena.changed() == ("x", "again")
    arena.close()
