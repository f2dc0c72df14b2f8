"""Global state that a call of the entry point leaves changed is an error; what it restores, and what an import does, is none."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from suites import baseline_source, load_task
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
SOURCE = baseline_source(load_task("vector_add"))
BODY = "    out = torch.empty_like(x)\n"


def with_line(line: str, top: str = "") -> str:
    """The baseline with a line at the beginning of its entry point."""
    assert SOURCE.count(BODY) == 1
    return "import os\nfrom contextlib import suppress\n" + SOURCE.replace(
        BODY, f"    {line}\n{BODY}"
    ).replace("\n\n\n", f"\n{top}\n\n\n", 1)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("torch.manual_seed(7)", "the seed of torch's default generator"),
        ("torch.set_default_dtype(torch.float64)", "torch's default dtype"),
        ("torch.set_default_device('meta')", "torch's default device"),
        ("os.environ['SOMETHING_OF_MINE'] = '1'", "the environment variable SOMETHING_OF_MINE"),
        ("os.environ.pop('HOME', None) or os.environ.pop('PATH', None)", "the environment variable"),
        ("torch.set_num_threads(torch.get_num_threads() + 1)", "torch's number of threads"),
        (
            "torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())",
            "deterministic",
        ),
        ("torch.set_grad_enabled(False)", "torch's gradient mode"),
    ],
)
async def test_what_a_call_leaves_changed_is_refused_by_its_name(
    pool: DevicePool, line: str, changed: str
) -> None:
    found = await judge(pool, with_line(line))
    assert found.error is not None, found.verdict
    assert (found.verdict, found.error.kind) == (Verdict.REJECTED, "global_state"), found.error
    assert changed in found.error.message


@pytest.mark.parametrize(
    "line",
    [
        "with torch.random.fork_rng(devices=[]): torch.manual_seed(7)",
        "kept = os.environ.get('MINE'); os.environ['MINE'] = '1'; os.environ.pop('MINE')",
        "with torch.no_grad(): torch.is_grad_enabled()",
    ],
)
async def test_what_a_call_restores_is_no_change(pool: DevicePool, line: str) -> None:
    found = await judge(pool, with_line(line))
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)


async def test_a_seed_at_import_is_no_change_of_a_call(pool: DevicePool) -> None:
    found = await judge(pool, with_line("pass", top="torch.manual_seed(0)"))
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
