"""Protects the call for timing of modules on a GPU: own sizes if they fit, and the small calls if no large sizes run."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

from harness.recording import model_scripts
from harness.recording.model_scripts import choose_model_script
from harness.wire.calls.tensors import TensorSpec
from harness.wire.errors import NotRecorded
from harness.wire.messages.script import RanScript, RecordedCall, RecordedOutput, Script
from harness.worker.recording.performance_inputs import call_with_largest
from tests.support.tasks.scripts import model_task

MIB = 1 << 20
TEXT = """\
batch_size = 1024
width = 1024


def get_inputs():
    return [torch.rand(batch_size, width)]


def get_init_inputs():
    return []
"""
PUBLIC = model_task(TEXT, Path(), "copy", "ModelNew()")


class Device:
    """Runs the text of a script here. Calls with more bytes than `memory_bytes` raise `error`."""

    def __init__(self, memory_bytes: int = 64 * MIB, error: Exception | None = None) -> None:
        self.memory_bytes = memory_bytes
        self.error = error
        self.inputs: list[torch.Tensor] = []

    def names(self) -> dict[str, object]:
        device = self

        class ModelNew(torch.nn.Module):
            def cuda(self, *_: object) -> ModelNew:
                return self

            def forward(self, x: torch.Tensor) -> None:
                if 2 * x.nbytes > device.memory_bytes and device.error is not None:
                    raise device.error
                device.inputs.append(x)

        return {"ModelNew": ModelNew}

    async def ask(self, script: Script, _: int) -> RanScript:
        self.inputs.clear()
        try:
            exec(script.test, self.names())  # noqa: S102 -- our own text
        except (MemoryError, RuntimeError) as error:
            return RanScript((), error=str(error))
        x = self.inputs[0]
        data = TensorSpec("float32", tuple(x.shape), x.stride(), x.numpy().tobytes())
        return RanScript((RecordedCall("ModelNew()(x)", {"x": data}, (RecordedOutput("out", "", data),)),))


@pytest.fixture(autouse=True)
def tensors_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)


@pytest.mark.parametrize(
    ("bound", "device", "shape", "note"),
    [
        (8 * MIB, Device(), (1024, 1024), "timed at the benchmark's own sizes"),
        (3 * MIB, Device(), (256, 1024), "timed at batches up to 256, smaller than the benchmark's own"),
        (
            8 * MIB,
            Device(4 * MIB, RuntimeError("out of memory")),
            (512, 1024),
            "timed at batches up to 512, smaller than the benchmark's own",
        ),
        (
            8 * MIB,
            Device(2 * MIB, NotRecorded("its test ended its process")),
            None,
            "timed at no larger sizes than these: its test ended its process",
        ),
    ],
    ids=["own sizes", "too large", "out of memory", "process ended"],
)
async def test_the_call_for_timing_has_the_largest_sizes_that_run(
    monkeypatch: pytest.MonkeyPatch, bound: int, device: Device, shape: tuple[int, int] | None, note: str
) -> None:
    monkeypatch.setattr(model_scripts, "MOST_TIMED_BYTES", bound)
    script, notes = await choose_model_script(PUBLIC, device.ask, on_gpu=True)
    assert notes[-1] == note
    assert bool(script.performance) is (shape is not None)
    if shape is not None:
        device.inputs.clear()
        stand_in = ModuleType("reference")
        vars(stand_in).update(device.names())
        call_with_largest(script.performance, stand_in, torch.device("cpu"))
        assert [tuple(x.shape) for x in device.inputs] == [shape]


async def test_a_recording_without_a_gpu_has_small_calls_only() -> None:
    script, notes = await choose_model_script(PUBLIC, Device().ask, on_gpu=False)
    assert script.performance == ""
    assert not any("timed" in note for note in notes)
