"""Protects the memory of a tape's player: fresh for each play, and prepared ahead. The driver is fake."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.wire.launch_tape import Fill, Tape
from harness.wire.records import View
from harness.worker.kit import gpu
from harness.worker.replay.player import Player

INPUTS = torch.zeros(64, dtype=torch.uint8)


def output(storage: int) -> View:
    return View(storage=storage, dtype="float32", shape=(16,), strides=(1,), offset=0)


@pytest.fixture
def player(monkeypatch: pytest.MonkeyPatch) -> Player:
    """A player in host memory, for a tape that fills one of two buffers and returns both."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: _FakeDriver())
    monkeypatch.setattr(gpu, "HERE", torch.device("cpu"))
    tape = Tape(
        kernels=(),
        storages=(64, 64),
        steps=(Fill(0, "float32", 3.0),),
        outputs=(output(0), output(1)),
        structure="tuple",
    )
    return Player(tape)


class _FakeDriver:
    def __getattr__(self, name: str) -> Any:
        return None


def test_play_never_sees_memory_of_earlier_play(player: Player) -> None:
    for _ in range(3):
        filled, untouched = player(INPUTS)
        assert bool((filled == 3.0).all())
        assert bool((untouched.view(torch.uint8) == 0xFF).all())
        untouched.fill_(1.0)
        del filled, untouched


def test_prepared_memory_serves_one_play(player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    player.ready()
    calls: list[int] = []
    ready = player.ready
    monkeypatch.setattr(player, "ready", lambda: calls.append(1) or ready())
    first = player(INPUTS)
    assert not calls
    second = player(INPUTS)
    assert calls
    assert first[1].data_ptr() != second[1].data_ptr()
