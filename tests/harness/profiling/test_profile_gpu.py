"""A profile on a GPU: the tool counts the kernel of one call, under a sandbox, with the lease held."""

from __future__ import annotations

import gzip
import hashlib
import shutil

import pytest

from harness import DevicePool
from harness.profiling.taking import take_profile
from suites import baseline_source, load_task
from tests.support.judge.gpu import DEVICE, gpu_pool, needs_gpu

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu, pytest.mark.asyncio(loop_scope="session")]


async def test_profile_has_one_call_with_its_figures_and_the_raw_file(gpu_pool: DevicePool) -> None:
    task, kept = load_task("softmax"), dict[str, bytes]()
    profile = await take_profile(
        gpu_pool,
        baseline_source(task),
        task,
        case=task.open_cases[0].name,
        device=DEVICE,
        seed=1,
        keep=lambda files: kept.update(files),
    )
    assert profile.case == task.open_cases[0].name
    assert {kernel.launches for kernel in profile.kernels} == {1}
    assert all(kernel.us for kernel in profile.kernels)
    assert "read-allow-list" not in profile.opened
    [digest] = profile.raw.values()
    assert hashlib.sha256(kept[digest]).hexdigest() == digest
    if shutil.which("ncu"):
        assert profile.tool.startswith("ncu")
        assert profile.notes == ()
        assert b"Kernel Name" in gzip.decompress(kept[digest])
        assert all(kernel.read_bytes and kernel.occupancy and kernel.memory for kernel in profile.kernels)
