"""Device samples contain the figures that a GPU reports and no invented figures."""

import json
import sys

from engine.process.telemetry import DeviceSampler
from harness import Device
from harness.node.telemetry.watcher import Telemetry

GPU = Device(name="0", kind="cuda", description="A GPU", address="0000:c1:00.0")


async def test_gpu_sample_has_the_reported_figures_and_is_sent_on_change() -> None:
    command = (
        sys.executable,
        "-m",
        "tests.support.timing.scripted_sampler",
        json.dumps([{"clock_mhz": 1980}]),
    )
    async with Telemetry(GPU.address, GPU.kind, command=command) as telemetry:
        sampler = DeviceSampler([GPU], {}, {"0": telemetry.state})
        (sample,) = await sampler.changed()
        assert (sample.clock_mhz, sample.utilisation, sample.power_w) == (1980, None, None)
        assert await sampler.changed() == []


async def test_gpu_without_telemetry_has_no_figures() -> None:
    (sample,) = await DeviceSampler([GPU], {"0": ["softmax#1/1"]}, {}).changed()
    assert (sample.busy_with, sample.clock_mhz, sample.memory_used_bytes) == (("softmax#1/1",), None, None)
