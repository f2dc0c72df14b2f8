"""Protects the slot from host code that loops at `gpu` sizes: it ends soon, and the error names the line."""

from __future__ import annotations

import time

import msgspec
import pytest

from harness import DevicePool, Evaluation, TimeLimits, Verdict, evaluate, target
from harness.stages.modes import Cases
from harness.worker.compiler.capture import CompiledLaunch, compile_kernel
from harness.worker.compiler.host_code import HostTime, HostTooSlow
from suites import load_task

pytestmark = [pytest.mark.judge, pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="session")]
HOST_CPU_S = 0.3


@pytest.fixture
def impatient(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> DevicePool:
    monkeypatch.setattr(pool, "limits", lambda _: TimeLimits(host_cpu_s=HOST_CPU_S))
    return pool


def flip_after(*lines: str) -> str:
    """Source of a correct `flip` with lines of host code before its launch."""
    baseline = (load_task("flip").folder / "baseline.py").read_text(encoding="utf-8")
    allocation = "    out = torch.empty_like(x)\n"
    assert baseline.count(allocation) == 1
    return baseline.replace(allocation, allocation + "".join(f"    {line}\n" for line in lines))


async def judge_flip(pool: DevicePool, source: str) -> Evaluation:
    """Evaluate a `flip` on one case: 2 columns for the interpreter, 1,000,000 for the compiler."""
    task = load_task("flip")
    case = msgspec.structs.replace(
        task.cases[0], cpu={"rows": 2, "columns": 2}, gpu={"rows": 2, "columns": 1_000_000}
    )
    task = msgspec.structs.replace(task, cases=(case,))
    return await evaluate(source, task, pool, Cases((case.name,)), targets=[target("gfx942")], seed=1)


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


async def test_python_loop_is_a_timeout_that_names_its_line(impatient: DevicePool) -> None:
    source = flip_after("total = 0", "for j in range(columns**2):", "    total += j")
    evaluation = await judge_flip(impatient, source)
    assert evaluation.verdict is Verdict.TIMEOUT
    assert evaluation.error.line in (line_of(source, "for j in"), line_of(source, "total += j"))
    assert f"did not end within {HOST_CPU_S:g} s of CPU time at its gpu sizes" in evaluation.error.message


async def test_loop_of_large_copies_is_unsupported(impatient: DevicePool) -> None:
    """A GPU may run these copies in time, so they are not the candidate's fault."""
    source = flip_after("for j in range(columns):", "    held = x.clone()")
    evaluation = await judge_flip(impatient, source)
    assert evaluation.verdict is Verdict.UNSUPPORTED
    assert evaluation.error.line == line_of(source, "x.clone()")
    assert "tensor operators, which a GPU may run faster" in evaluation.error.message


async def test_loop_of_column_copies_is_refused_as_on_a_gpu(impatient: DevicePool) -> None:
    source = flip_after("for j in range(columns):", "    out[:, j] = x[:, j]")
    evaluation = await judge_flip(impatient, source)
    assert evaluation.verdict is Verdict.REJECTED
    assert evaluation.error.kind == "moved_by_host"
    assert evaluation.error.line == line_of(source, "out[:, j] = x[:, j]")


def use_cpu(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


async def test_time_of_the_compiler_does_not_count() -> None:
    launch = CompiledLaunch("kernel", 1)
    with HostTime(use_cpu.__code__.co_filename, 0.1):
        compile_kernel(lambda: use_cpu(0.3), launch)
    with pytest.raises(HostTooSlow), HostTime(use_cpu.__code__.co_filename, 0.1):
        use_cpu(60)
