"""What people see of the devices: GPUs by what they tell, and nothing made up."""

import json
import sys

from engine.telemetry import DeviceSampler
from harness import Device
from harness.node.telemetry import Telemetry

GPU = Device(name="0", kind="cuda", description="A GPU", address="0000:c1:00.0")


async def test_a_gpu_is_shown_by_what_it_tells_and_only_when_that_changed() -> None:
    command = (sys.executable, "-m", "tests.support.scripted_sampler", json.dumps([{"clock_mhz": 1980}]))
    async with Telemetry(GPU.address, GPU.kind, command=command) as told:
        sampler = DeviceSampler([GPU], {}, {"0": told})
        (shown,) = await sampler.changed()
        assert (shown.clock_mhz, shown.utilisation, shown.power_w) == (1980, None, None)
        assert await sampler.changed() == []


async def test_a_gpu_without_telemetry_has_no_figures() -> None:
    (shown,) = await DeviceSampler([GPU], {"0": ["softmax#1/1"]}, {}).changed()
    assert (shown.busy_with, shown.clock_mhz, shown.memory_used_bytes) == (("softmax#1/1",), None, None)
