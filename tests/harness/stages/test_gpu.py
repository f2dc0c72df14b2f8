"""Protects judging on a real GPU: verdicts, faults, time limits and unfinished work, and that nothing stays on the device."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from harness import Basis, DevicePool, Evaluation, Outcome, TimeLimits, Verdict, discover_devices
from harness.node.leases import take
from harness.processes.gpus.quarantine import ServerProbe
from suites import baseline_source, load_suite, load_task
from tests.support.judge.gpu import DEVICE, gpu_pool, judge_small, needs_gpu
from tests.support.judge.judging import judge

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu, pytest.mark.asyncio(loop_scope="session")]

HEAD = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at + SHIFT, total, mask=inside)


@triton.jit
def blind_kernel(flag, shift, rounds):
    # The interpreter supports no assembly, so it judges nothing of this module, and only the GPU tests the kernel.
    value = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(flag)], dtype=tl.int32, is_pure=False, pack=1)
    for _ in range(rounds):
        value = tl.atomic_add(flag, value)
    tl.store(flag + shift, value)


def blind(x, shift=0, rounds=0):
    blind_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device=x.device), shift, rounds)


def launch(x, y, out, shift=0):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SHIFT=shift, BLOCK=1024)


"""


def adding(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"{HEAD}def vector_add(x, y):\n    out = torch.empty_like(x)\n{lines}\n"


def verdict_and_kind(evaluation: Evaluation) -> tuple[str, str]:
    return str(evaluation.verdict), evaluation.error.kind if evaluation.error is not None else ""


@pytest.mark.parametrize("name", [task.name for task in load_suite("starter")])
async def test_starter_baseline_is_correct_at_gpu_sizes(gpu_pool: DevicePool, name: str) -> None:
    task = load_task(name)
    evaluation = await judge(gpu_pool, baseline_source(task), name)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None), evaluation.printed
    gpu_target = gpu_pool.devices[0].target
    assert next(iter(evaluation.resources)) == gpu_target
    assert {row.architecture for row in evaluation.resources[str(gpu_target)]} == {gpu_target}
    assert {latency.case for latency in evaluation.latency} == {case.name for case in task.open_cases}
    assert {latency.confirmed for latency in evaluation.latency} <= {"tape", "wall"}
    assert all(
        latency.outcome in (Outcome.NOT_RESOLVED, Outcome.TOO_SHORT) for latency in evaluation.latency
    ), evaluation.latency
    assert any(fact.name.startswith("cpu, ") and fact.basis is Basis.PROOF for fact in evaluation.facts)
    assert evaluation.stages[-1].ok


async def test_wrong_element_is_found(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(gpu_pool, adding("launch(x, y, out)\nout[-1:] = x[-1:]\nreturn out"))
    assert verdict_and_kind(evaluation) == ("wrong", "mismatch")
    assert evaluation.error.mismatch is not None


async def test_store_past_an_input_changes_its_guard_zone(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(
        gpu_pool, adding("launch(x, y, out)\nlaunch(x[-64:], y[-64:], x[-64:], shift=64)\nreturn out")
    )
    assert verdict_and_kind(evaluation) == ("wrong", "out_of_bounds")


async def test_store_past_an_output_is_found(gpu_pool: DevicePool) -> None:
    body = "blind(x)\nlaunch(x, y, out, shift=4)\nlaunch(x, y, out)\nreturn out"
    evaluation = await judge_small(gpu_pool, adding(body))
    assert verdict_and_kind(evaluation) == ("wrong", "out_of_bounds"), evaluation.error
    assert "past the end of a tensor" in evaluation.error.message


async def test_changed_input_is_refused(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(gpu_pool, adding("launch(x, y, out)\nlaunch(x, y, x)\nreturn out"))
    assert verdict_and_kind(evaluation) == ("rejected", "input_changed")


async def test_unwritten_output_is_wrong(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(
        gpu_pool, adding("launch(x[: x.numel() - x.numel() // 4], y, out)\nreturn out")
    )
    assert verdict_and_kind(evaluation) == ("wrong", "mismatch")


async def test_illegal_address_is_a_crash_and_next_candidate_is_judged(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(
        gpu_pool, adding("spare = x.new_empty(3)\nlaunch(x, y, out)\nblind(x, shift=1 << 40)\nreturn out")
    )
    assert verdict_and_kind(evaluation) == ("crash", "gpu_fault")
    assert "illegal memory access" in evaluation.error.message
    after = await judge_small(gpu_pool, adding("launch(x, y, out)\nreturn out"))
    assert (after.verdict, after.error) == (Verdict.CORRECT, None)


async def test_gpu_out_of_memory_is_a_call_error(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(
        gpu_pool,
        adding(
            "launch(x, y, out)\nblind(x)\ntorch.empty(1 << 50, dtype=torch.uint8, device=x.device)\nreturn out"
        ),
    )
    assert verdict_and_kind(evaluation) == ("call_error", "out_of_memory")
    assert "out of memory" in evaluation.error.message


@pytest.mark.parametrize(
    ("body", "graph", "waits"),
    [
        ("launch(x, y, out)\nreturn out", True, False),
        ("launch(x, y, out)\ntorch.cuda.synchronize()\nreturn out", False, True),
        (
            "launch(x, y, out)\nassert out.numel() == 0 or out.flatten()[0].item() is not None\nreturn out",
            False,
            True,
        ),
    ],
    ids=["launches only", "synchronize", "item"],
)
async def test_gpu_shows_whether_the_host_waits_and_a_graph_holds_the_call(
    gpu_pool: DevicePool, body: str, *, graph: bool, waits: bool
) -> None:
    evaluation = await judge_small(gpu_pool, adding(body))
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    assert evaluation.serving
    assert {(not call.no_graph, call.host_waits, call.same_bits) for call in evaluation.serving} == {
        (graph, waits, True)
    }
    assert all(batch.same_bits for batch in evaluation.batch_rows)


FAILED_CAPTURE = """
import torch
from harness.worker.kit.call_graph import CallGraph, NotCaptured
numbers = torch.ones(1 << 20, device="cuda")
try:
    CallGraph(lambda _: (numbers + 1).sum().item(), 1)
except NotCaptured as why:
    print(why)
torch.cuda.empty_cache()
torch.rand(8, device="cuda")
print(int(CallGraph(lambda _: numbers + 1, 1).outputs[0].sum()))
"""


async def test_process_goes_on_after_a_failed_capture() -> None:
    command = (sys.executable, "-c", FAILED_CAPTURE)
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    why, total = done.stdout.splitlines()
    assert "capturing" in why
    assert total == str(2 << 20)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hasty_pool() -> AsyncIterator[DevicePool]:
    limits = TimeLimits(call_s=12.0, call_cpu_s=60.0, case_s=12.0, case_cpu_s=60.0)
    async with DevicePool((DEVICE,), slots=1, limits=limits) as started:
        yield started


async def test_hanging_kernel_times_out_and_frees_the_gpu(hasty_pool: DevicePool) -> None:
    evaluation = await judge_small(
        hasty_pool, adding("blind(x, rounds=1 << 40)\nlaunch(x, y, out)\nreturn out")
    )
    assert verdict_and_kind(evaluation) == ("timeout", "timeout")
    assert "on the GPU" in evaluation.error.message
    after = await judge_small(hasty_pool, adding("launch(x, y, out)\nreturn out"))
    assert (after.verdict, after.error) == (Verdict.CORRECT, None)


SIDE = """
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    blind(x, rounds=2_000)
    launch(x, y, out)
"""


async def test_healthy_gpu_passes_probe(gpu_pool: DevicePool) -> None:
    assert await ServerProbe(gpu_pool.compiling)(gpu_pool.devices[0]) == ""


async def test_crash_blames_candidate_and_returns_lease(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(gpu_pool, adding("launch(x, y, out, shift=1 << 33)\nreturn out"))
    assert evaluation.verdict is not Verdict.INFRA_ERROR
    assert gpu_pool.health.lost == {}
    async with asyncio.timeout(60):  # spare workers start in the background
        lease = await take(gpu_pool.devices[0], exclusive=True)
    lease.release()


async def test_work_on_side_stream_must_be_joined(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(gpu_pool, adding(SIDE + "return out"))
    assert evaluation.verdict in (Verdict.REJECTED, Verdict.WRONG)
    assert evaluation.error.kind in ("unfinished", "mismatch")
    joined = await judge_small(
        gpu_pool, adding(SIDE + "torch.cuda.current_stream().wait_stream(side)\nreturn out")
    )
    assert (joined.verdict, joined.error) == (Verdict.CORRECT, None), joined.printed


async def test_launch_option_of_different_vendor_is_unsupported(gpu_pool: DevicePool) -> None:
    option = "waves_per_eu=2" if gpu_pool.devices[0].kind == "cuda" else "num_ctas=2"
    source = adding("launch(x, y, out)\nreturn out").replace("BLOCK=1024)", f"BLOCK=1024, {option})")
    assert verdict_and_kind(await judge_small(gpu_pool, source))[0] == "unsupported"


async def test_autotune_trials_do_not_count_as_launches(gpu_pool: DevicePool) -> None:
    tuned = HEAD.replace(
        "@triton.jit\ndef add_kernel",
        "@triton.autotune([triton.Config({'BLOCK': 256}), triton.Config({'BLOCK': 1024}, num_warps=8)], key=['n'])\n"
        "@triton.jit\ndef add_kernel",
    )
    grid = "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)"
    source = (
        f"{tuned}def vector_add(x, y):\n    out = torch.empty_like(x)\n"
        f"    add_kernel[{grid}](x, y, out, x.numel(), SHIFT=0)\n    return out\n"
    )
    evaluation = await judge_small(gpu_pool, source)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    launches = [fact.value for fact in evaluation.facts if fact.name.endswith(": launches")]
    assert launches
    assert all(value == "1 (add_kernel)" for value in launches)


async def test_torch_operator_instead_of_kernel_is_refused(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(gpu_pool, adding("launch(x, y, out)\nreturn torch.add(x, y)"))
    assert verdict_and_kind(evaluation) == ("rejected", "operator")


async def test_guest_sees_one_gpu_and_reports_sandbox_layers(gpu_pool: DevicePool) -> None:
    counted = "assert torch.cuda.device_count() == 1\nlaunch(x, y, out)\nreturn out"
    evaluation = await judge_small(gpu_pool, adding(counted))
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    assert {layer.name for layer in evaluation.sandbox} >= {"session", "limits", "network", "read-allow-list"}
    assert not [layer for layer in evaluation.sandbox if layer.state == "failed"]


async def test_device_has_target_address_and_visibility() -> None:
    device = next(device for device in discover_devices() if device.name == DEVICE)
    assert device.target is not None
    assert device.address.count(":") == 2
    assert device.visibility.partition("=")[2]


async def test_starved_compiler_in_a_call_is_judged_again_once(gpu_pool: DevicePool) -> None:
    evaluation = await judge_small(gpu_pool, adding("raise OSError(28, 'No space left on device')"))
    assert evaluation.verdict is Verdict.CALL_ERROR
    assert evaluation.judged_again
    evaluation = await judge_small(gpu_pool, adding("raise OSError(2, 'No such file')"))
    assert not evaluation.judged_again
