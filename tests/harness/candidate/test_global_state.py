"""Protects the check of global state: a change that a call leaves is refused; restored state and import effects pass."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from suites import baseline_source, load_task
from tests.support.judge.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
SOURCE = baseline_source(load_task("vector_add"))
BODY = "    out = torch.empty_like(x)\n"


def with_line(line: str, top: str = "") -> str:
    """The baseline with one more line at the start of its entry point."""
    assert SOURCE.count(BODY) == 1
    return "import os\nfrom contextlib import suppress\n" + SOURCE.replace(
        BODY, f"    {line}\n{BODY}"
    ).replace("\n\n\n", f"\n{top}\n\n\n", 1)


CHANGES = {
    "torch.manual_seed(7)": "the seed of torch's default generator",
    "torch.set_default_dtype(torch.float64)": "torch's default dtype",
    "torch.set_default_device('meta')": "torch's default device",
    "os.environ['SOMETHING_OF_MINE'] = '1'": "the environment variable SOMETHING_OF_MINE",
    "torch.set_num_threads(torch.get_num_threads() + 1)": "torch's number of threads",
}
FURTHER_CHANGES = {
    "os.environ.pop('HOME', None) or os.environ.pop('PATH', None)": "the environment variable",
    "torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())": "deterministic",
    "torch.set_grad_enabled(False)": "torch's gradient mode",
}


@pytest.mark.parametrize("changes", [CHANGES, pytest.param(FURTHER_CHANGES, marks=pytest.mark.soak)])
async def test_changed_global_state_is_refused_by_name(pool: DevicePool, changes: dict[str, str]) -> None:
    evaluation = await judge(pool, with_line("; ".join(changes)), cases=1)
    assert evaluation.error is not None, evaluation.verdict
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.REJECTED, "global_state"), evaluation.error
    assert [changed for changed in changes.values() if changed not in evaluation.error.message] == []


async def test_restored_state_and_seed_at_import_pass(pool: DevicePool) -> None:
    lines = (
        "with torch.random.fork_rng(devices=[]): torch.manual_seed(7)",
        "kept = os.environ.get('MINE'); os.environ['MINE'] = '1'; os.environ.pop('MINE')",
        "with torch.no_grad(): torch.is_grad_enabled()",
    )
    evaluation = await judge(pool, with_line("\n    ".join(lines), top="torch.manual_seed(0)"), cases=1)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
