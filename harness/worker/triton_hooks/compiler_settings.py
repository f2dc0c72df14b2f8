"""Settings that change what Triton's compiler makes of a kernel: knobs and environment variables.

A candidate may not change them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from triton import knobs

_HARMLESS_KNOBS = frozenset({"autotuning", "proton", "redis"})
"""Groups of knobs that change no code."""
_PREFIXES = (
    "TRITON_", "LLVM_", "MLIR_", "AMDGCN_", "NVPTX_", "PTXAS_", "DISABLE_", "ALLOW_", "STORE_", "USE_", "CUDA_HOME", "CUDA_PATH",
)  # fmt: skip
"""Variables that Triton and its LLVM read. Some name files with other code, a different assembler or a plugin."""
_HARMLESS_VARIABLES = frozenset({"TRITON_PRINT_AUTOTUNING", "TRITON_CACHE_AUTOTUNING"})
"""Variables with these prefixes that only change what is printed and cached."""

Settings = dict[str, Any]


def now() -> Settings:
    """Every setting that differs from its default, by name."""
    groups = {name: group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs)}
    return {
        f"triton.knobs.{name}.{knob}": value
        for name, group in groups.items()
        if name not in _HARMLESS_KNOBS
        for knob, value in vars(group).items()
    } | {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_PREFIXES) and name not in _HARMLESS_VARIABLES
    }


def differences(before: Settings) -> Iterator[str]:
    """Names of the settings that changed since `before`."""
    settings = now()
    for name in sorted(before.keys() | settings.keys()):
        if before.get(name) != settings.get(name):
            yield name
