"""Launch options: which target's compiler takes which, and what to say of those that it does not."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection

import triton
from triton.backends.amd.compiler import HIPOptions
from triton.backends.nvidia.compiler import CUDAOptions

OPTIONS = {
    "hip": frozenset(field.name for field in dataclasses.fields(HIPOptions)),
    "cuda": frozenset(field.name for field in dataclasses.fields(CUDAOptions)),
}
"""By back end, those of the installed Triton."""

_REPLACING = ("ir_override", "extern_libs", "ptx_options")
"""They hand the compiler code from files, in place of a kernel's or of the functions that it calls; options of the assembler may as well, and
change what loads and stores mean.
"""

_VERSIONED = {
    "instruction_sched_variant": ("hip",),
    "schedule_hint": ("hip",),
    "cluster_dims": ("cuda",),
    "ctas_per_cga": ("cuda",),
    "num_buffers_warp_spec": ("cuda",),
    "num_consumer_groups": ("cuda",),
    "reg_dec_producer": ("cuda",),
    "reg_inc_consumer": ("cuda",),
    "enable_persistent": ("hip", "cuda"),
    "enable_warp_specialization": ("hip", "cuda"),
}
"""Options of other Triton versions and builds by back end: a kernel that names them is no worse for it."""


def refusal(name: str, value: object, backend: str) -> str:
    """Why nothing can be said of a launch with this option: it is the other vendor's, or brings code that is not the kernel's; else empty."""
    if name in _REPLACING:
        return f"launch option `{name}`: it can make other code of a kernel than what its source says, which nobody here has judged; leave it out"
    if name == "num_ctas" and backend == "hip" and isinstance(value, int) and value > 1:
        return f"launch option `num_ctas={value}`: AMD's GPUs have no clusters"
    if name in OPTIONS[backend] or backend in _VERSIONED.get(name, ()):
        return ""
    if name in _VERSIONED or any(name in known for known in OPTIONS.values()):
        return f"launch option `{name}` exists only for the other vendor's targets"
    return ""


def elsewhere(name: str, value: object, target: str) -> str:
    """Why a launch is not compiled for this target: it names another one; else empty."""
    if name != "arch" or value is None or str(value).partition(":")[0] == target.replace("_", ""):
        return ""
    return f"launch option `arch={value!r}`: compiled for {target} here, leave it out"


def dropped(name: str, backend: str) -> str:
    """The note for an option that another version of Triton has and this one not, so that it is left out; else empty."""
    if name in OPTIONS[backend] or backend not in _VERSIONED.get(name, ()):
        return ""
    return f"option `{name}` is unknown to triton {triton.__version__}: ignored"


def unknown(name: str, backend: str, parameters: Collection[str]) -> str:
    """What is wrong with a keyword that is neither an option nor a parameter of the kernel, as a launch raises it; else
    empty.
    """
    if name in OPTIONS[backend] or name in parameters:
        return ""
    near = difflib.get_close_matches(name, [*OPTIONS[backend], *parameters], n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"launch keyword `{name}` is neither an option of triton {triton.__version__} nor a parameter of the kernel{hint}"
