"""Whether a candidate patched what it runs on: members of libraries and their settings, before its import and after its last call."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy
import torch

from .members import Members, Owner, owners_in

_MODULES = (
    "torch", "torch.nn.functional", "torch.cuda", "torch.linalg", "torch.testing", "torch.utils._python_dispatch",
    "builtins", "time", "math", "os", "sys", "functools", "inspect", "numpy",
)  # fmt: skip
_OF_TRITON = ("triton.testing", "triton.runtime.interpreter")
"""Those that Triton loads when somebody asks for them: the candidate's import must find them loaded."""
_CLASSES: tuple[type, ...] = (torch.Tensor, torch.cuda.Event, torch.cuda.Stream)


class Snapshot:
    """The members of libraries that a candidate or the judge computes with, and how the libraries are set."""

    def __init__(self, owners: tuple[Owner, ...]) -> None:
        self._members = Members(owners)
        self._settings = _settings()

    @classmethod
    def take(cls) -> Snapshot:
        """Remembers what functions and classes are called what, and how libraries are set, now."""
        for name in _OF_TRITON:
            importlib.import_module(name)
        return cls((*map(importlib.import_module, _MODULES), *_CLASSES, *owners_in("triton")))

    def differences(self) -> tuple[str, ...]:
        """Names that now mean something else, as `torch.matmul`, and settings of libraries that are others now."""
        now = _settings()
        changed = (name for name, value in self._settings.items() if now[name] != value)
        return tuple(dict.fromkeys((*self._members.replaced(), *changed)))


def _settings() -> dict[str, Any]:
    """What changes how later calls compute. Precision of matrix products is not among it: kernels' authors set it for their
    own trials, and neither judge nor timing baseline runs in this process.
    """
    return {
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.get_default_device()": str(torch.get_default_device()),
        "torch.is_grad_enabled()": torch.is_grad_enabled(),
        "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled(),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
        "torch.get_num_threads()": torch.get_num_threads(),
        "numpy.geterr()": numpy.geterr(),
        "sys.gettrace()": sys.gettrace(),
        "sys.getprofile()": sys.getprofile(),
    }
