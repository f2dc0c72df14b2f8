"""Judging on a real GPU: verdicts, faults, time limits, what still runs, and that nothing stays on the device."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from harness import Basis, DevicePool, Evaluation, Outcome, TimeLimits, Verdict, discover_devices
from harness.node.leases import take
from harness.processes.quarantine import ServerProbe
from suites import baseline_source, load_suite, load_task
from tests.support.gpu import DEVICE, gpu_pool, judge_small, needs_gpu, small
from tests.support.judging import judge

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
    # The interpreter has no assembly, so it judges nothing of a module that runs this, and the GPU meets it unproven.
    one = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(flag)], dtype=tl.int32, is_pure=False, pack=1)
    for _ in range(rounds):
        one = tl.atomic_add(flag, one)
    tl.store(flag + shift, one)


def blind(x, shift=0, rounds=0):
    blind_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device=x.device), shift, rounds)


def launch(x, y, out, shift=0):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SHIFT=shift, BLOCK=1024)


"""


def adding(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"{HEAD}def vector_add(x, y):\n    out = torch.empty_like(x)\n{lines}\n"


def told(found: Evaluation) -> tuple[str, str]:
    return str(found.verdict), found.error.kind if found.error is not None else ""


@pytest.mark.parametrize("name", [task.name for task in load_suite("starter")])
async def test_every_baseline_is_correct_at_gpu_sizes(gpu_pool: DevicePool, name: str) -> None:
    task = load_task(name)
    found = await judge(gpu_pool, baseline_source(task), name)
    assert (found.verdict, found.error) == (Verdict.CORRECT, None), found.printed
    own = gpu_pool.devices[0].target
    assert next(iter(found.resources)) == own
    assert {one.binary for one in found.resources[str(own)]} == {own}
    assert {one.case for one in found.latency} == {case.name for case in task.open_cases}
    assert {one.confirmed for one in found.latency} <= {"graph", "wall"}
    assert all(one.outcome in (Outcome.NOT_RESOLVED, Outcome.TOO_SHORT) for one in found.latency), (
        found.latency
    )
    assert any(fact.name.startswith("cpu, ") and fact.basis is Basis.PROOF for fact in found.facts)
    assert found.stages[-1].ok


async def test_a_wrong_element_is_found_on_the_gpu(gpu_pool: DevicePool) -> None:
    found = await judge_small(gpu_pool, adding("launch(x, y, out)\nout[-1:] = x[-1:]\nreturn out"))
    assert told(found) == ("wrong", "mismatch")
    assert found.error is not None
    assert found.error.mismatch is not None


async def test_a_store_past_an_input_is_seen_in_its_guard_zone(gpu_pool: DevicePool) -> None:
    found = await judge_small(
        gpu_pool, adding("launch(x, y, out)\nlaunch(x[-64:], y[-64:], x[-64:], shift=64)\nreturn out")
    )
    assert told(found) == ("wrong", "out_of_bounds")


async def test_a_store_past_an_output_is_seen_behind_it(gpu_pool: DevicePool) -> None:
    body = "blind(x)\nlaunch(x, y, out, shift=4)\nlaunch(x, y, out)\nreturn out"
    found = await judge_small(gpu_pool, adding(body))
    assert told(found) == ("wrong", "out_of_bounds"), found.error
    assert found.error is not None
    assert "past the end of a tensor" in found.error.message


async def test_a_changed_input_is_refused(gpu_pool: DevicePool) -> None:
    found = await judge_small(gpu_pool, adding("launch(x, y, out)\nlaunch(x, y, x)\nreturn out"))
    assert told(found) == ("rejected", "input_changed")


async def test_memory_that_nobody_wrote_is_wrong(gpu_pool: DevicePool) -> None:
    found = await judge_small(gpu_pool, adding("launch(x[: x.numel() - x.numel() // 4], y, out)\nreturn out"))
    assert told(found) == ("wrong", "mismatch")
    assert found.error is not None
    assert found.error.mismatch is not None
    assert found.error.mismatch.got == "nan"


async def test_an_illegal_address_is_a_crash_in_the_drivers_words_and_the_next_is_judged(
    gpu_pool: DevicePool,
) -> None:
    found = await judge_small(gpu_pool, adding("launch(x, y, out)\nblind(x, shift=1 << 40)\nreturn out"))
    assert told(found) == ("crash", "gpu_fault")
    assert found.error is not None
    assert "illegal memory access" in found.error.message
    after = await judge_small(gpu_pool, adding("launch(x, y, out)\nreturn out"))
    assert (after.verdict, after.error) == (Verdict.CORRECT, None)


async def test_no_room_on_the_gpu_is_the_candidates_error_and_says_so(gpu_pool: DevicePool) -> None:
    found = await judge_small(
        gpu_pool,
        adding(
            "launch(x, y, out)\nblind(x)\ntorch.empty(1 << 50, dtype=torch.uint8, device=x.device)\nreturn out"
        ),
    )
    assert told(found) == ("call_error", "out_of_memory")
    assert found.error is not None
    assert "out of memory" in found.error.message


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hasty_pool() -> AsyncIterator[DevicePool]:
    limits = TimeLimits(call_s=12.0, call_cpu_s=60.0, case_s=12.0, case_cpu_s=60.0)
    async with DevicePool((DEVICE,), slots=1, limits=limits) as started:
        yield started


async def test_a_kernel_that_hangs_ends_at_the_limit_and_leaves_the_gpu_free(hasty_pool: DevicePool) -> None:
    found = await judge_small(hasty_pool, adding("blind(x, rounds=1 << 40)\nlaunch(x, y, out)\nreturn out"))
    assert told(found) == ("timeout", "timeout")
    assert found.error is not None
    assert "on the GPU" in found.error.message
    after = await judge_small(hasty_pool, adding("launch(x, y, out)\nreturn out"))
    assert (after.verdict, after.error) == (Verdict.CORRECT, None)


SIDE = """
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    blind(x, rounds=2_000)
    launch(x, y, out)
"""


async def test_a_gpu_that_computes_passes_its_probe(gpu_pool: DevicePool) -> None:
    assert await ServerProbe(gpu_pool.compiling)(gpu_pool.devices[0]) == ""


async def test_a_crash_is_the_candidates_and_gives_the_lease_back(gpu_pool: DevicePool) -> None:
    found = await judge_small(gpu_pool, adding("launch(x, y, out, shift=1 << 33)\nreturn out"))
    assert found.verdict is not Verdict.INFRA_ERROR
    assert gpu_pool.health.lost == {}
    async with asyncio.timeout(60):  # spares are started meanwhile
        lease = await take(gpu_pool.devices[0], exclusive=True)
    assert lease is not None
    lease.release()


async def test_work_on_another_stream_must_be_joined(gpu_pool: DevicePool) -> None:
    found = await judge_small(gpu_pool, adding(SIDE + "return out"))
    assert found.verdict in (Verdict.REJECTED, Verdict.WRONG)
    assert found.error is not None
    assert found.error.kind in ("unfinished", "mismatch")
    joined = await judge_small(
        gpu_pool, adding(SIDE + "torch.cuda.current_stream().wait_stream(side)\nreturn out")
    )
    assert (joined.verdict, joined.error) == (Verdict.CORRECT, None), joined.printed


async def test_the_other_vendors_launch_option_is_unsupported(gpu_pool: DevicePool) -> None:
    option = "waves_per_eu=2" if gpu_pool.devices[0].kind == "cuda" else "num_ctas=2"
    source = adding("launch(x, y, out)\nreturn out").replace("BLOCK=1024)", f"BLOCK=1024, {option})")
    assert told(await judge_small(gpu_pool, source))[0] == "unsupported"


async def test_an_autotuned_kernel_is_correct_and_its_trials_are_not_its_work(gpu_pool: DevicePool) -> None:
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
    found = await judge_small(gpu_pool, source)
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    launches = [fact.value for fact in found.facts if fact.name.endswith(": launches")]
    assert launches
    assert all(value == "1 (add_kernel)" for value in launches)


async def test_torch_in_place_of_the_kernel_is_refused(gpu_pool: DevicePool) -> None:
    found = await judge_small(gpu_pool, adding("launch(x, y, out)\nreturn torch.add(x, y)"))
    assert told(found) == ("rejected", "operator")


async def test_a_guest_sees_one_gpu_and_every_layer_is_told(gpu_pool: DevicePool) -> None:
    counted = "assert torch.cuda.device_count() == 1\nlaunch(x, y, out)\nreturn out"
    found = await judge_small(gpu_pool, adding(counted))
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    assert {layer.name for layer in found.sandbox} >= {"session", "limits", "network", "read-allow-list"}
    assert not [layer for layer in found.sandbox if layer.state == "failed"]


async def test_the_device_is_named_with_its_target_and_its_place() -> None:
    device = next(one for one in discover_devices() if one.name == DEVICE)
    assert device.target is not None
    assert device.address.count(":") == 2
    assert device.visibility.partition("=")[2]


async def test_sizes_of_the_small_task_are_those_of_cpu() -> None:
    assert all(case.gpu == case.cpu for case in small(load_task("softmax")).cases)
