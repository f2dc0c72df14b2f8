"""Detects changes by a candidate: patches of libraries, and global settings that it left changed.

Members of libraries are compared by identity: a name must still name the same object. A call of the entry point must leave global
settings unchanged, because the next caller computes with them.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch

Owner = ModuleType | type

_MODULES = (
    "torch", "torch.nn.functional", "torch.cuda", "torch.linalg", "torch.testing", "torch.utils._python_dispatch",
    "builtins", "time", "math", "os", "sys", "functools", "inspect", "numpy",
)  # fmt: skip
_LAZY_MODULES = ("triton.testing", "triton.runtime.interpreter")
"""Modules that Triton loads on first use; loaded before the candidate's import, so that their members can be compared."""
_CLASSES: tuple[type, ...] = (torch.Tensor, torch.cuda.Event, torch.cuda.Stream)
_DRIVER = ".driver"
"""Part of the names of modules that set some members at the first use of a device."""
_CHANGED_BY_PYTHON = frozenset(
    {"__abstractmethods__", "_abc_impl", "_", "last_type", "last_value", "last_traceback", "last_exc"}
)
"""Members that Python itself changes at run time."""
SET_BY_TORCH = frozenset({"CUDA_MODULE_LOADING"})
"""Variables that torch sets at the first use of a GPU."""
GPU_SEED = "the seed of a GPU's default generator"
State = Mapping[str, object]


class Snapshot:
    """Members and settings of the libraries that candidates and judge compute with, at one moment."""

    def __init__(self) -> None:
        for name in _LAZY_MODULES:
            importlib.import_module(name)
        self._members = Members((*map(importlib.import_module, _MODULES), *_CLASSES, *owners_in("triton")))
        self._settings = _settings()

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


class Members:
    """Functions, classes and properties of modules and classes. A later new name does not count: libraries load parts lazily."""

    def __init__(self, owners: Iterable[Owner]) -> None:
        self._before = [(owner, _members(owner)) for owner in owners]

    def replaced(self) -> Iterator[str]:
        """Names that were replaced or removed, as `torch.matmul`."""
        for owner, before in self._before:
            now = _members(owner)
            for name, value in before.items():
                if now.get(name) is not value and not _is_wrapped_by_library(owner, now.get(name), value):
                    yield f"{_name(owner)}.{name}"


def owners_in(package: str) -> Iterator[Owner]:
    """The loaded modules of a package and their classes, without drivers."""
    seen: set[int] = set()
    for name, module in list(sys.modules.items()):
        if not _is_inside(name, package) or _DRIVER in name:
            continue
        yield module
        for value in list(vars(module).values()):
            if isinstance(value, type) and _is_inside(value.__module__, package) and id(value) not in seen:
                seen.add(id(value))
                yield value


def _is_inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _members(owner: Owner) -> dict[str, Any]:
    """The members by name; inherited members too, so that a new method over an inherited method counts as a replacement."""
    parts = owner.__mro__[-2::-1] if isinstance(owner, type) else (owner,)
    return {
        name: value
        for part in parts
        for name, value in list(vars(part).items())
        if name not in _CHANGED_BY_PYTHON
        and (callable(value) or isinstance(value, (property, staticmethod, classmethod)))
    }


def _is_wrapped_by_library(owner: Owner, now: Any, before: Any) -> bool:
    """Whether the library itself wrapped the member, as torch wraps `manual_seed` when it imports its compiler."""
    if inspect.unwrap(now, stop=lambda function: function is before) is not before or not hasattr(
        now, "__code__"
    ):
        return False
    top = sys.modules[_name(owner).partition(".")[0]]
    return Path(now.__code__.co_filename).is_relative_to(
        Path(getattr(top, "__file__", None) or "/nowhere").parent
    )


def _name(owner: Owner) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


def read_settings() -> State:
    """Each setting's value, by its name in error messages. Runs before and after each call, so it is cheap."""
    settings: dict[str, object] = {
        # The seed, not the state: a call may draw random numbers, but not set a seed.
        "the seed of torch's default generator": torch.default_generator.initial_seed(),
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
    } | torch_settings()
    generators: tuple[object, ...] = torch.cuda.default_generators  # none before the first use of a GPU
    if generators and isinstance(generators[0], torch._C.Generator):  # the interpreter has a replacement
        settings[GPU_SEED] = tuple(generator.initial_seed() for generator in torch.cuda.default_generators)
    for name in os.environ.keys() - SET_BY_TORCH:
        settings[f"the environment variable {name}"] = os.environ[name]
    return settings


def torch_settings() -> dict[str, object]:
    """Defaults and modes of torch that change how later calls compute.

    Precision of matrix products is left out: authors of kernels set it for their own trials, and neither judge nor timing
    baseline runs in this process.
    """
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": str(torch.get_default_device()),
        "torch's number of threads": torch.get_num_threads(),
        "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch's gradient mode": torch.is_grad_enabled(),
    }


def changed_settings(before: State) -> tuple[str, ...]:
    """Names of the settings that differ from `before`. A GPU's seed counts only if the GPU was in use before."""
    now = read_settings()
    names = (before.keys() | now.keys()) - ({GPU_SEED} - before.keys())
    return tuple(sorted(name for name in names if before.get(name) != now.get(name)))
