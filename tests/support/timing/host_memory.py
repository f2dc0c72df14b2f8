"""Lets the code of timers and players work on host memory, without a device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.worker.kit import gpu


@pytest.fixture
def host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of the device is host memory, and its streams have nothing to wait for."""
    monkeypatch.setattr(gpu, "HERE", torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
