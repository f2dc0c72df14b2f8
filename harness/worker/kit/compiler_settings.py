"""What Triton's compiler heeds beside a kernel and its options: knobs and environment variables, which a candidate may set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from triton import knobs

_HARMLESS = frozenset({"autotuning", "proton", "redis"})
"""Groups of knobs that change no code."""
_PREFIXES = (
    "TRITON_", "LLVM_", "MLIR_", "AMDGCN_", "NVPTX_", "PTXAS_", "DISABLE_", "ALLOW_", "STORE_", "USE_", "CUDA_HOME", "CUDA_PATH",
)  # fmt: skip
"""Of the variables that Triton and its LLVM read: some name files with other code, another assembler or a plugin."""
_TOLD = frozenset({"TRITON_PRINT_AUTOTUNING", "TRITON_CACHE_AUTOTUNING"})
"""Variables among them that only say what is printed and kept."""

Settings = dict[str, Any]


def now() -> Settings:
    """Every setting that somebody made so far, by name."""
    groups = {name: group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs)}
    made = {
        f"triton.knobs.{name}.{knob}": value
        for name, group in groups.items()
        if name not in _HARMLESS
        for knob, value in vars(group).items()
    }
    return made | {
        name: value for name, value in os.environ.items() if name.startswith(_PREFIXES) and name not in _TOLD
    }


def differences(before: Settings) -> Iterator[str]:
    """Names of settings that are others than `before`."""
    made = now()
    for name in sorted(before.keys() | made.keys()):
        if before.get(name) != made.get(name):
            yield name
