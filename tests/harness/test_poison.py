"""Fresh memory holds other values from call to call: a kernel that looks for one of them is wrong in some call."""

from __future__ import annotations

import pytest
import torch

from harness import DevicePool, Verdict
from harness.cases.call_plan import make_plan
from harness.worker.kit.poison import KINDS, Poison, poison
from suites import baseline_source, load_task
from tests.support.judging import judge

pytestmark = pytest.mark.judge
STORE = "tl.store(out_ptr + offsets, x + y, mask=mask)"
ONLY = {
    "nan": "old != old",
    "large": "tl.abs(old) > 1e4",
    "not_nan": "old == old",
}


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.float8_e4m3fn, torch.int64, torch.int8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5000)])
def test_each_kind_fills_every_element(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
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


def test_strides_are_no_matter() -> None:
    for kind in Poison:
        tensor = torch.empty_strided((3, 4), (1, 8))
        poison(tensor, kind)
        assert tensor.isnan().all() if kind is Poison.NAN else tensor.isfinite().all()


def test_each_plan_has_each_kind_and_other_calls_have_it_by_another_source() -> None:
    task = load_task("softmax")
    drawn = []
    for source in ("one", "other"):
        plan = make_plan(task, 1, source, exam=False)
        kinds = [KINDS[step.poison % len(KINDS)] for step in (*plan.execution, *plan.repeats)]
        assert set(kinds) == set(Poison)
        drawn.append(kinds)
    assert drawn[0] != drawn[1]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", ONLY)
async def test_a_kernel_that_computes_only_where_it_finds_poison_is_wrong(
    pool: DevicePool, name: str
) -> None:
    source = baseline_source(load_task("vector_add"))
    assert source.count(STORE) == 1
    looking = f"old = tl.load(out_ptr + offsets, mask=mask)\n    tl.store(out_ptr + offsets, tl.where({ONLY[name]}, x + y, old), mask=mask)"
    found = await judge(pool, source.replace(STORE, looking))
    assert found.error is not None, found.verdict
    assert (found.verdict, found.error.kind) == (Verdict.WRONG, "mismatch"), found.error
