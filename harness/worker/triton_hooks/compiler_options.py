"""Launch options, knobs and environment variables: they change the code that Triton's compiler makes of a kernel.

Says which launch options the compiler of a back end accepts. A candidate may not change knobs and variables.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Collection, Iterator
from typing import Any

import triton
from triton import knobs
from triton.backends.amd.compiler import HIPOptions
from triton.backends.nvidia.compiler import CUDAOptions

from .versions import OTHER_OPTIONS

OPTIONS = {
    "hip": frozenset(field.name for field in dataclasses.fields(HIPOptions)),
    "cuda": frozenset(field.name for field in dataclasses.fields(CUDAOptions)),
}
"""Options of the installed Triton, by back end."""

_REPLACING = ("ir_override", "extern_libs", "ptx_options")
"""Options that give the compiler code from files instead of the kernel's own, or assembler options, which can do the same."""
_HARMLESS_KNOBS = frozenset({"autotuning", "proton", "redis"})
"""Groups of knobs that change no code."""
_PREFIXES = (
    "TRITON_", "LLVM_", "MLIR_", "AMDGCN_", "NVPTX_", "PTXAS_", "DISABLE_", "ALLOW_", "STORE_", "USE_", "CUDA_HOME", "CUDA_PATH",
)  # fmt: skip
"""Variables that Triton and its LLVM read. Some name files with other code, a different assembler or a plugin."""
_HARMLESS_VARIABLES = frozenset({"TRITON_PRINT_AUTOTUNING", "TRITON_CACHE_AUTOTUNING"})
"""Variables with these prefixes that only change what is printed and cached."""
Settings = dict[str, Any]


def refusal(name: str, value: object, backend: str) -> str:
    """Why a launch with this option cannot be judged: the other vendor's option, or one that replaces the kernel's code.

    Else empty.
    """
    if name in _REPLACING:
        return f"launch option `{name}`: it can replace the code of the kernel by code that was not judged; leave it out"
    if name == "num_ctas" and backend == "hip" and isinstance(value, int) and value > 1:
        return f"launch option `num_ctas={value}`: AMD's GPUs have no clusters"
    if name in OPTIONS[backend] or backend in OTHER_OPTIONS.get(name, ()):
        return ""
    if name in OTHER_OPTIONS or any(name in options for options in OPTIONS.values()):
        return f"launch option `{name}` exists only for the other vendor's targets"
    return ""


def elsewhere(name: str, value: object, target: str) -> str:
    """Why a launch cannot be compiled for this target: its option `arch` names a different one; else empty."""
    if name != "arch" or value is None or str(value).partition(":")[0] == target.replace("_", ""):
        return ""
    return f"launch option `arch={value!r}`: compiled for {target} here, leave it out"


def dropped(name: str, backend: str) -> str:
    """The note on an option that is ignored because only other versions of Triton have it; else empty."""
    if name in OPTIONS[backend] or backend not in OTHER_OPTIONS.get(name, ()):
        return ""
    return f"option `{name}` is unknown to triton {triton.__version__}: ignored"


def unknown(name: str, backend: str, parameters: Collection[str]) -> str:
    """The error message for a keyword that is neither an option nor a parameter of the kernel; else empty."""
    if name in OPTIONS[backend] or name in parameters:
        return ""
    near = difflib.get_close_matches(name, [*OPTIONS[backend], *parameters], n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"launch keyword `{name}` is neither an option of triton {triton.__version__} nor a parameter of the kernel{hint}"


def read_settings() -> Settings:
    """Return Triton's settings that differ from their defaults, and its variables, by name.

    Those that cannot change the code of kernels are left out.
    """
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


def changed_settings(before: Settings) -> Iterator[str]:
    """Names of the settings that changed since `before`."""
    settings = read_settings()
    for name in sorted(before.keys() | settings.keys()):
        if before.get(name) != settings.get(name):
            yield name
