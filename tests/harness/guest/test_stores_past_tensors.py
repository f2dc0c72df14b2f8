"""Protects the detection of stores past a tensor that a candidate allocated on a GPU.

The judge writes a mark behind each tensor; these tests use host memory instead of a GPU's.
"""

from __future__ import annotations

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from harness.worker.guest.gpu_launches import MARK, GpuObservation

pytestmark = pytest.mark.judge


def marked(block: torch.Tensor, size: int) -> tuple[GpuObservation, torch.Tensor]:
    """A tensor at the start of a block, and an observation that marked the rest of the block."""
    storage = torch._C._construct_storage_from_data_pointer(block.data_ptr(), block.device, size)
    tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
    observation = GpuObservation()
    reference = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
    observation.behind.append(("a tensor", reference, block[size:].fill_(MARK)))
    return observation, tensor


def test_store_past_a_tensor_is_reported() -> None:
    block = torch.zeros(512, dtype=torch.uint8)
    observation, tensor = marked(block, 400)
    tensor.fill_(7)
    observation.look_behind()
    assert observation.missed_stores == []
    block[400] = 7
    observation.look_behind()
    assert observation.missed_stores == ["a kernel stored past the end of a tensor that the candidate made"]


def test_store_past_a_freed_tensor_is_ignored() -> None:
    block = torch.zeros(512, dtype=torch.uint8)
    observation, tensor = marked(block, 400)
    del tensor
    block.fill_(7)
    observation.look_behind()
    assert observation.missed_stores == []
    kept = torch.zeros(400, dtype=torch.uint8)
    observation.behind[:] = [("a tensor", StorageWeakRef(kept.untyped_storage()), block[400:])]  # type: ignore[no-untyped-call]
    observation.look_behind()
    assert observation.missed_stores == []
