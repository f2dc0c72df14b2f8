"""Whether a candidate patched what it runs on: identities of functions before its import and after its last call."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from .library import Insides, Library, is_unchanged

_MODULES = (
    "torch", "torch.nn.functional", "torch.cuda", "torch.linalg", "torch.testing", "torch.utils._python_dispatch",
    "builtins", "time", "math", "os", "sys", "socket", "select", "struct", "hashlib", "msgspec", "numpy",
    "ast", "contextlib", "copy", "functools", "inspect", "json", "linecache", "pathlib", "re", "subprocess", "tempfile", "textwrap", "tokenize",
)  # fmt: skip
"""The last row: what Triton's compiler is made with."""
_OF_TRITON = ("triton.testing", "triton.runtime.interpreter")
"""Those that Triton loads when somebody asks for them: the candidate's import must find them loaded."""
_OWN = "harness."
_CLASSES: tuple[type, ...] = (torch.Tensor, torch.cuda.Event, torch.cuda.Stream)
_MOVING_PARTS = frozenset(
    {"_", "last_type", "last_value", "last_traceback", "last_exc", "path_importer_cache"}
)
"""Names that change as Python runs."""


class Snapshot:
    """Values by owner and name. Names that appear later are no difference: modules load parts of themselves lazily."""

    def __init__(self, owners: dict[str, Any], settings: dict[str, Any], triton: Library) -> None:
        self._owners = owners
        parts = {id(part): part for owner in owners.values() for part in _lineage(owner)}
        self._held = {number: (part, dict(vars(part))) for number, part in parts.items()}
        # Torch's are thousands, and every process of a candidate would look at all: the code behind those is not held.
        own = {
            id(part)
            for name, owner in owners.items()
            if not name.startswith("torch")
            for part in _lineage(owner)
        }
        self._insides = Insides(value for number in own for value in self._held[number][1].values())
        self._settings = settings
        self._triton = triton

    @classmethod
    def take(cls) -> Snapshot:
        """Remembers what functions and classes are called what, and how libraries are set, now."""
        for name in _OF_TRITON:
            importlib.import_module(name)
        return cls(_owners(), _settings(), Library("triton"))

    def differences(self) -> tuple[str, ...]:
        """Names that now mean something else, as `torch.matmul`, and settings of libraries that are others now."""
        now, settings = _owners(), _settings()
        moved = {
            number for number, (part, before) in self._held.items() if not is_unchanged(vars(part), before)
        }
        replaced = (
            f"{name}.{member}"
            for name, owner in self._owners.items()
            if now.get(name) is not owner or not moved.isdisjoint(map(id, _lineage(owner)))
            for member in self._replaced(owner, now.get(name))
        )
        changed = (name for name, value in self._settings.items() if settings[name] != value)
        return tuple(dict.fromkeys((*replaced, *self._insides.changed(), *self._triton.replaced(), *changed)))

    def _replaced(self, owner: Any, now: Any) -> Iterator[str]:
        """Names of callables that this owner, or what stands in its place now, has others for."""
        before = {name: value for part in _lineage(owner) for name, value in self._held[id(part)][1].items()}
        members = {name: value for part in _lineage(now) for name, value in vars(part).items()}
        for name, value in before.items():
            if callable(value) and name not in _MOVING_PARTS and members.get(name) is not value:
                yield name


def _owners() -> dict[str, Any]:
    owners: dict[str, Any] = {"builtins": builtins}
    for name in _MODULES:
        owners[name] = importlib.import_module(name)
    owners |= {name: module for name, module in sys.modules.items() if name.startswith(_OWN)}
    owners |= {f"{one.__module__}.{one.__qualname__}": one for one in _CLASSES}
    for module in [module for name, module in owners.items() if name.startswith(_OWN)]:
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__.startswith(_OWN):
                owners[f"{value.__module__}.{value.__qualname__}"] = value
    return owners


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


def _lineage(owner: Any) -> tuple[Any, ...]:
    """Of a class also what it inherits from, first, so that a new method that hides an inherited one is a difference."""
    if owner is None:
        return ()
    return owner.__mro__[::-1] if isinstance(owner, type) else (owner,)
