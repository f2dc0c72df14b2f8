"""Protects the original protocol: candidates are judged by a benchmark's own definition of correct."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness import DevicePool, HarnessError, target
from harness.recording.original import OriginalOutcome, OriginalVerdict, check_definition, judge_original
from sessions.home import home_from
from suites import add_suite, load_public_suite
from suites.public.task import PublicTask, SuiteKind
from tests.suites.public import clones

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
SHOWN = "print(result_gold['shown'])\n"


def task_of(clone: Path, kind: SuiteKind, name: str) -> PublicTask:
    home = home_from(os.environ)
    home.ensure()
    add_suite(kind, clone, home.suites, kind=kind)
    return next(task for task in load_public_suite(kind, registry=home.suites).tasks if task.name == name)


async def judge(pool: DevicePool, task: PublicTask, source: str) -> OriginalVerdict:
    return await judge_original(task, source, pool=pool, target=target("gfx942"))


async def test_results_are_compared_at_the_tolerance_of_the_suite(
    pool: DevicePool, isolated_home: Path, tmp_path: Path
) -> None:
    """TritonBench-revised: 1e-3 on the results of the test, with the same seed on both sides."""
    task = task_of(clones.geak_eval(tmp_path), SuiteKind.TRITONBENCH_REVISED, "scale")
    close = clones.TRITON.replace("x * factor, mask", "x * (factor + 1e-4), mask")
    with_own_test = clones.TRITON + "\n\ndef test_own():\n    raise ValueError\n\n\ntest_own()\n"
    wrong = clones.TRITON.replace("x * factor, mask", "x * (factor + 0.1), mask")
    verdicts = [await judge(pool, task, source) for source in (close, with_own_test, wrong, "x = (\n")]
    assert [verdict.outcome for verdict in verdicts] == [
        OriginalOutcome.PASSES,
        OriginalOutcome.PASSES,
        OriginalOutcome.DIFFERS,
        OriginalOutcome.FAILS,
    ]
    assert verdicts[2].why.startswith("results[10] differs in ")
    assert verdicts[3].why == "SyntaxError: '(' was never closed in line 1"


async def test_tritonbench_g_compares_what_is_printed_alone(
    pool: DevicePool, isolated_home: Path, tmp_path: Path
) -> None:
    clone = clones.tritonbench(tmp_path)
    file = clone / "data/TritonBench_G_v1/scale.py"
    reference = clones.TRITON.replace("BLOCK = 64\n", "").replace(", BLOCK)", ", 64)")
    reference = reference.replace("scale_with_gradients = _Scale.apply\n", "")
    script = "def test_scale():\n    return {'shown': scale(torch.ones(2, device='cuda')).tolist()}\n\n\nresult_gold = test_scale()\n"
    wrong = reference.replace("x * factor, mask", "x * 3, mask")
    outcomes = []
    for shown in ("", SHOWN):
        file.write_text(clones.separated(reference, script + shown))
        task = task_of(clone, SuiteKind.TRITONBENCH_G, "scale")
        outcomes.append((await judge(pool, task, wrong)).outcome)
    assert outcomes == [OriginalOutcome.PASSES, OriginalOutcome.DIFFERS]
    # Only imports and functions of a candidate are kept there, so a constant is lost.
    constant = await judge(pool, task, reference.replace(", 64)", ", BLOCK)") + "\nBLOCK = 64\n")
    assert constant.why == "NameError: name 'BLOCK' is not defined"


async def test_kernelbench_x_needs_the_name_of_the_task(
    pool: DevicePool, isolated_home: Path, tmp_path: Path
) -> None:
    clone = clones.kernelbench_x(tmp_path)
    (clone / "utils/data_utils.py").write_text(
        "import torch\n\n\ndef rand_tensor(shape):\n    return torch.rand(shape)\n"
    )
    task = task_of(clone, SuiteKind.KERNELBENCH_X, "twice")
    sources = (
        clones.TORCH,
        "from math import tau as twice\n",
        clones.TORCH.replace("add(x, x", "add(x, 1.01 * x"),
    )
    verdicts = [await judge(pool, task, source) for source in sources]
    assert [verdict.outcome for verdict in verdicts] == [
        OriginalOutcome.PASSES,
        OriginalOutcome.FAILS,
        OriginalOutcome.DIFFERS,
    ]
    assert verdicts[1].why == "it defines neither twice nor kernel_function"


async def test_a_reference_that_fails_here_says_nothing_about_candidates(
    pool: DevicePool, isolated_home: Path, tmp_path: Path
) -> None:
    clone = clones.geak_eval(tmp_path)
    file = clone / "geak_eval/data/TritonBench/data/TritonBench_G_v1/scale.py"
    file.write_text(clones.separated("raise OSError('no device')\n" + clones.TRITON, clones.SCRIPT))
    verdict = await judge(pool, task_of(clone, SuiteKind.TRITONBENCH_REVISED, "scale"), clones.TRITON)
    assert verdict == OriginalVerdict(
        OriginalOutcome.UNSUPPORTED, "the reference fails here: OSError: no device"
    )


async def test_other_suites_are_refused() -> None:
    with pytest.raises(HarnessError, match="the original protocol of rocm is not available"):
        check_definition(SuiteKind.ROCM)
