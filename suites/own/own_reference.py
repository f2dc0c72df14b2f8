"""The text of a kernel that is its own reference. The judge's process runs it with tensors in the CPU's memory."""

from __future__ import annotations

import re

_SELECT = re.compile(r"\btorch\.cuda\.device\(")
_HELPER = '''

import contextlib  # noqa: E402


def _wavedeck_device(device):
    """Select the GPU of a tensor; nothing is selected for a tensor in the CPU's memory."""
    in_memory = device is None or getattr(device, "type", "cuda") == "cpu"
    return contextlib.nullcontext() if in_memory else torch.cuda.device(device)
'''


def without_gpu(text: str) -> str:
    """Return a kernel's text in which `torch.cuda.device(x.device)` also accepts tensors in the CPU's memory."""
    replaced, count = _SELECT.subn("_wavedeck_device(", text)
    return replaced.rstrip() + _HELPER if count else text
