"""Protects launch tapes: what a tape holds of a call, and the memory of its player. The driver is fake."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from triton.compiler.compiler import CompiledKernel

from harness.wire.calls.launch_tape import Address, Fill, Scalar, Tape, TapedLaunch
from harness.wire.calls.tensors import INPUTS, TensorSpec
from harness.worker.replay.loaded_tape import LoadedTape
from harness.worker.replay.taping import NotTaped, taped
from tests.support.timing.host_memory import host_memory

__all__ = ["host_memory"]

MEMORY = torch.zeros(64, dtype=torch.uint8)


def output(storage: int) -> TensorSpec:
    return TensorSpec(storage=storage, dtype="float32", shape=(16,), strides=(1,), offset=0)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, host_memory: None) -> LoadedTape:
    """A tape loaded in host memory that fills one of two buffers and returns both."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: _FakeDriver())
    tape = Tape(
        kernels=(),
        storages=(64, 64),
        steps=(Fill(0, "float32", 3.0),),
        outputs=(output(0), output(1)),
        structure="tuple",
    )
    return LoadedTape(tape)


class _FakeDriver:
    def __getattr__(self, name: str) -> Any:
        return None


def test_play_never_sees_memory_of_earlier_play(loaded: LoadedTape) -> None:
    for _ in range(3):
        filled, untouched = loaded(MEMORY)
        assert bool((filled == 3.0).all())
        assert bool((untouched.view(torch.uint8) == 0xFF).all())
        untouched.fill_(1.0)
        del filled, untouched


def test_prepared_memory_serves_one_play(loaded: LoadedTape) -> None:
    loaded.ready()
    first, second = loaded(MEMORY), loaded(MEMORY)
    assert first[1].data_ptr() != second[1].data_ptr()


KERNEL = SimpleNamespace(
    name="add",
    kernel=b"code",
    src=SimpleNamespace(signature={"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}),
    metadata=SimpleNamespace(shared=16, num_warps=4, target=SimpleNamespace(warp_size=32)),
)


@pytest.fixture
def without_driver(monkeypatch: pytest.MonkeyPatch, host_memory: None) -> None:
    monkeypatch.setattr(CompiledKernel, "launch_metadata", lambda kernel, *args: None)


def launch(x: torch.Tensor, out: torch.Tensor) -> None:
    CompiledKernel.launch_metadata(KERNEL, (2,), 0, x, out, 7, 64)


@pytest.mark.usefixtures("without_driver")
def test_tape_holds_fills_launches_and_outputs_of_a_call() -> None:
    def call() -> torch.Tensor:
        out, total = torch.empty(8), torch.zeros(4)
        launch(MEMORY[16:].view(torch.float32), total[1:])
        launch(total, out)
        return out[2:]

    tape = taped(call, MEMORY)
    number = Scalar("i32", 7)
    assert tape.storages == (32, 16)
    assert tape.steps == (
        Fill(1, "float32", 0),
        TapedLaunch(0, (2, 1, 1), (Address(INPUTS, 16), Address(1, 4), number)),
        TapedLaunch(0, (2, 1, 1), (Address(1, 0), Address(0, 0), number)),
    )
    assert tape.outputs == (TensorSpec(storage=0, dtype="float32", shape=(6,), strides=(1,), offset=2),)
    assert [(kernel.name, kernel.binary, kernel.threads) for kernel in tape.kernels] == [
        ("add", b"code", 128)
    ]


@pytest.mark.usefixtures("without_driver")
def test_call_with_operator_between_launches_has_no_tape() -> None:
    with pytest.raises(NotTaped, match="`add` of torch"):
        taped(lambda: torch.empty(8) + 1, MEMORY)


def test_output_inside_inputs_is_played_at_its_place(loaded: LoadedTape) -> None:
    view = TensorSpec(storage=INPUTS, dtype="float32", shape=(2,), strides=(2,), offset=3)
    inputs = torch.arange(20, dtype=torch.float32).view(torch.uint8)[16:]  # a part of a larger block
    loaded._tape = msgspec.structs.replace(loaded._tape, outputs=(view,))
    (out,) = loaded(inputs)
    assert out.tolist() == [7.0, 9.0]
