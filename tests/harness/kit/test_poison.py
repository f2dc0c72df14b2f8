"""Protects the poison in fresh memory: its values vary between calls, so a kernel that looks for one of them fails a call."""

from __future__ import annotations

import pytest
import torch

from harness import DevicePool, Verdict
from harness.cases.call_plan import make_plan
from harness.worker.kit.poison import KINDS, Poison, poison
from suites import baseline_source, load_task
from tests.support.draws import drawn
from tests.support.judge.judging import judge

pytestmark = pytest.mark.judge
STORE = "tl.store(out_ptr + offsets, x + y, mask=mask)"
POISON_CHECKS = {"nan": "old != old", "large": "tl.abs(old) > 1e4", "not_nan": "old == old"}


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.float8_e4m3fn, torch.int64, torch.int8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5000)])
def test_each_poison_fills_every_element(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    for kind in Poison:
        tensor = torch.zeros(shape, dtype=torch.uint8).to(dtype)
        poison(tensor, kind)
        values = tensor.double()
        if dtype.is_floating_point:
            assert bool(values.isnan().all()) if kind is Poison.NAN else bool(values.isfinite().all())
        if kind is not Poison.RESULTS:
            assert bool((values != 0).all())
        elif tensor.numel() > 5000:
            assert 0 < float(values.std()) < 3


def test_poison_fills_strided_tensors() -> None:
    for kind in Poison:
        tensor = torch.empty_strided((3, 4), (1, 8))
        poison(tensor, kind)
        assert tensor.isnan().all() if kind is Poison.NAN else tensor.isfinite().all()


def test_each_plan_uses_every_poison_in_order_by_source() -> None:
    task = load_task("softmax")
    orders = []
    for source in ("first", "second"):
        plan = make_plan(task, 1, source, exam=False)
        kinds = [KINDS[step.poison % len(KINDS)] for step in (*plan.execution, *plan.repeats)]
        assert set(kinds) == set(Poison)
        orders.append(kinds)
    assert orders[0] != orders[1]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", drawn([*POISON_CHECKS], 1))
async def test_kernel_that_computes_only_over_poison_is_wrong(pool: DevicePool, name: str) -> None:
    source = baseline_source(load_task("vector_add"))
    assert source.count(STORE) == 1
    guarded_store = f"old = tl.load(out_ptr + offsets, mask=mask)\n    tl.store(out_ptr + offsets, tl.where({POISON_CHECKS[name]}, x + y, old), mask=mask)"
    evaluation = await judge(pool, source.replace(STORE, guarded_store))
    assert evaluation.error is not None, evaluation.verdict
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.WRONG, "mismatch"), evaluation.error
