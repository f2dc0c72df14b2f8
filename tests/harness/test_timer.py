"""A timer's answers that need no GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from harness.device import Device
from harness.worker.serving.arena import Arena
from harness.worker.timing.messages import BringBack, Done
from harness.worker.timing.timer import Timer


@pytest.fixture
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Timer:
    """On memory of the host's."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return Timer(tmp_path, Device("0", "cuda", "sm_90"))


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_copy_of_the_inputs_comes_back_as_calls_left_it(timer: Timer, *, spoilt: bool) -> None:
    arena = Arena({"x": torch.arange(1000.0), "rows": torch.arange(7), "n": 7})
    try:
        laid = torch.frombuffer(bytearray(os.pread(arena.descriptor, arena.size_bytes, 0)), dtype=torch.uint8)
        arena.blank()
        assert arena.changed() == ("x", "rows")
        timer._memory = [torch.zeros_like(laid), laid]
        if spoilt:
            laid[arena.arguments[0].offset_bytes + 3999] += 1
        answer = timer.answer(BringBack(nonce="1", copy=1, handle=b""), (os.dup(arena.descriptor),))
        assert answer == Done(nonce="1")
        assert arena.changed() == (("x",) if spoilt else ())
        assert arena.broken_guards() == ()
    finally:
        arena.close()
