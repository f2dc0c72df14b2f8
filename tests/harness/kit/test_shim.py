"""Protects the shim that plays a GPU of a target on the CPU; one forked process a target."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.programs import python

pytestmark = pytest.mark.judge

ASK = """
import json, os, sys, time, torch, triton
from harness.hardware.targets import target
from harness.worker.triton_hooks.stub_driver import install

*others, name = sys.argv[1:]
for other in others:
    if os.fork() == 0:
        name = other
        break
    assert os.wait()[1] == 0
install(target(name))
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
began = time.perf_counter()
while time.perf_counter() - began < 0.01: ...
end.record()
driver = triton.runtime.driver.active
bandwidth = triton.testing.get_dram_gbps(0)
x = torch.arange(6.0, device="cuda").reshape(2, 3)
with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
    y = (x @ x.T).to(device="cuda:0", dtype=torch.float64).pin_memory()
torch.manual_seed(7)
philox = torch.cuda.default_generators[torch.cuda.current_device()]
state = philox.get_state()
seed, offset = state.view(torch.int64)
offset += 4
philox.set_state(state)
print(json.dumps({
    "philox": [int(seed), torch.cuda.get_rng_state().view(torch.int64).tolist()[1]],
    "elapsed_ms": start.elapsed_time(end),
    "name": torch.cuda.get_device_name(),
    "capability": torch.cuda.get_device_capability(0),
    "arch_name": torch.cuda.get_device_properties(0).gcnArchName,
    "versions": [torch.version.hip is not None, torch.version.cuda is not None],
    "target": [driver.get_current_target().backend, driver.get_current_target().arch],
    "active": [name for name, backend in triton.backends.backends.items() if backend.driver.is_active()],
    "warp": driver.utils.get_device_properties(0)["warpSize"],
    "shared": driver.utils.get_device_properties(0)["max_shared_mem"],
    "processors": torch.cuda.get_device_properties(0).multi_processor_count,
    "active_device": str(driver.get_active_torch_device()),
    "bandwidth_gb_per_s": bandwidth,
    "sum": y.sum().item(),
    "dtype": str(y.dtype),
    "drawn": str(torch.rand(1, device="cuda", generator=torch.Generator(device="cuda").manual_seed(0)).device),
    "index_device": str(torch.empty(1, device=0).device),
    "real": torch._C._cuda_getCurrentRawStream(0),
    "compiled_code": torch._C._dynamo.guards._empty_strided_cuda((2, 3), (3, 1), torch.float16).shape,
    "meta_stays": str(torch.empty(1, device="meta").device.type),
}))
"""


EXPECTED = {
    "gfx942": {
        "target": ["hip", "gfx942"],
        "active": ["amd"],
        "name": "AMD Instinct MI300X",
        "capability": [9, 4],
        "warp": 64,
        "processors": 304,
        "shared": 65536,
        "versions": [True, False],
        "arch_name": "gfx942:sramecc+:xnack-",
        "bandwidth_gb_per_s": pytest.approx(5300, rel=1e-3),
    },
    "sm_90": {
        "target": ["cuda", 90],
        "active": ["nvidia"],
        "name": "NVIDIA H100 SXM5",
        "capability": [9, 0],
        "warp": 32,
        "processors": 132,
        "versions": [False, True],
        "bandwidth_gb_per_s": pytest.approx(3350, rel=1e-3),
    },
}
EVERYWHERE = {
    "active_device": "cuda:0",
    "sum": 5.0 + 14 * 2 + 50,
    "dtype": "torch.float64",
    "drawn": "cuda:0",
    "index_device": "cuda:0",
    "compiled_code": [2, 3],
    "meta_stays": "meta",
    "philox": [7, 4],
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return dict(zip(EXPECTED, map(json.loads, python(ASK, *EXPECTED).splitlines()), strict=True))


@pytest.mark.parametrize("target", EXPECTED)
def test_shim_answers_as_target_and_computes_on_the_cpu(answers: dict[str, Any], target: str) -> None:
    answer, expected = answers[target], EXPECTED[target] | EVERYWHERE
    assert {fact: answer[fact] for fact in expected} == expected
    assert 10 <= answer["elapsed_ms"] < 5000
