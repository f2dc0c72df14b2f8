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


TARGETS = ("gfx942", "sm_90")


@pytest.fixture(scope="module")
def all_answers() -> dict[str, Any]:
    return dict(zip(TARGETS, map(json.loads, python(ASK, *TARGETS).splitlines()), strict=True))


@pytest.fixture(params=TARGETS)
def answers(request: pytest.FixtureRequest, all_answers: dict[str, Any]) -> tuple[str, Any]:
    return request.param, all_answers[request.param]


def test_shim_answers_as_target(answers: tuple[str, Any]) -> None:
    name, answer = answers
    if name == "gfx942":
        assert answer["target"] == ["hip", "gfx942"]
        assert answer["name"] == "AMD Instinct MI300X"
        assert answer["arch_name"].startswith("gfx942:")
        assert (answer["capability"], answer["warp"], answer["versions"]) == ([9, 4], 64, [True, False])
        assert answer["bandwidth_gb_per_s"] == pytest.approx(5300, rel=1e-3)
    else:
        assert answer["target"] == ["cuda", 90]
        assert answer["name"] == "NVIDIA H100 SXM5"
        assert (answer["capability"], answer["warp"], answer["versions"]) == ([9, 0], 32, [False, True])
        assert answer["bandwidth_gb_per_s"] == pytest.approx(3350, rel=1e-3)
    assert answer["active_device"] == "cuda:0"
    assert answer["active"] == ["amd" if name == "gfx942" else "nvidia"]


def test_shim_tensors_compute_on_cpu(answers: tuple[str, Any]) -> None:
    _, answer = answers
    assert (answer["sum"], answer["dtype"]) == (5.0 + 14 * 2 + 50, "torch.float64")
    assert answer["drawn"] == "cuda:0"
    assert answer["index_device"] == "cuda:0"
    assert answer["compiled_code"] == [2, 3]
    assert answer["meta_stays"] == "meta"


def test_kernels_get_the_seed_and_the_offset_of_the_gpu(answers: tuple[str, Any]) -> None:
    _, answer = answers
    assert answer["philox"] == [7, 4]


def test_shim_events_measure_elapsed_time(answers: tuple[str, Any]) -> None:
    _, answer = answers
    assert 10 <= answer["elapsed_ms"] < 5000
