"""Detects patches by a candidate: library members and settings that differ between its import and its last call."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy
import torch

from .global_state import torch_settings
from .members import Members, Owner, owners_in

_MODULES = (
    "torch", "torch.nn.functional", "torch.cuda", "torch.linalg", "torch.testing", "torch.utils._python_dispatch",
    "builtins", "time", "math", "os", "sys", "functools", "inspect", "numpy",
)  # fmt: skip
_LAZY_MODULES = ("triton.testing", "triton.runtime.interpreter")
"""Modules that Triton loads on first use; loaded before the candidate's import, so that their members can be compared."""
_CLASSES: tuple[type, ...] = (torch.Tensor, torch.cuda.Event, torch.cuda.Stream)


class Snapshot:
    """Members and settings of the libraries that candidates and judge compute with, at one moment."""

    def __init__(self, owners: tuple[Owner, ...]) -> None:
        self._members = Members(owners)
        self._settings = _settings()

    @classmethod
    def take(cls) -> Snapshot:
        """The snapshot of this moment."""
        for name in _LAZY_MODULES:
            importlib.import_module(name)
        return cls((*map(importlib.import_module, _MODULES), *_CLASSES, *owners_in("triton")))

    def differences(self) -> tuple[str, ...]:
        """Names of members that were replaced, as `torch.matmul`, and of settings that changed."""
        now = _settings()
        changed = (name for name, value in self._settings.items() if now[name] != value)
        return tuple(dict.fromkeys((*self._members.replaced(), *changed)))


def _settings() -> dict[str, Any]:
    return {
        **torch_settings(),
        "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled(),
        "numpy.geterr()": numpy.geterr(),
        "sys.gettrace()": sys.gettrace(),
        "sys.getprofile()": sys.getprofile(),
    }
