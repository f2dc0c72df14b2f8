"""Differences between the supported versions of Triton, 3.5 to 3.7, and what the installed one offers to kernels.

The module `older_interpreter` has those of 3.5 in the interpreter.

| what | 3.6 | 3.7 | where it matters |
| --- | --- | --- | --- |
| launchers | built for each sequence of argument types | one for all kernels | `build_launcher` |
| first specialised argument | | imports the language Gluon | `warm.specialise_once` |
| AMD back end | dumps of each kernel that no process reads | | `cache_files.install` |
| the interpreter's semantic | new for each function of the language | one for all | `interpreter.interpreter` |
| loop bounds in the interpreter | arrays, which numpy 2.4 refuses as an index | numbers | `interpreter.interpreted_launches` |
| launch options | see `OTHER_OPTIONS` | see `OTHER_OPTIONS` | `compiler_options` |
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from types import SimpleNamespace

import triton
import triton.language as tl

from harness.wire.messages.server import Language

OTHER_OPTIONS = {
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
"""Launch options of other Triton versions and builds, with their back ends. A kernel may name them."""
UNREAD_DUMPS = ("translate_to_mir", "dump_sched_dag")
"""Functions of LLVM that the AMD back end of 3.6 calls for each kernel. It ignores the result unless it should write a file."""
FURTHER = (
    *("acos", "asin", "atan", "atan2", "cosh", "erfc", "expm1", "fmod", "isinf", "isnan", "log10", "log1p"),
    *("pow", "rint", "round", "sinh", "tan", "tanh", "trunc"),
)
"""Elementary functions that kernels for other versions take from `tl` or `tl.math`."""
OFTEN_USED = (
    *("libdevice", "any", "all", "mean", "var", "argsort", "make_block_ptr", "make_tensor_descriptor"),
    *("dot_scaled", "gather", "topk", "histogram"),
)
"""Names of `tl` that some versions have."""


def build_launcher(types: Sequence[str]) -> None:
    """Build the launcher of the active driver for these argument types. With 3.7 nothing is built."""
    driver = triton.runtime.driver.active
    source = SimpleNamespace(constants={}, signature=dict(enumerate(types)))
    metadata = SimpleNamespace(
        tensordesc_meta=None,
        num_ctas=1,
        warp_size=driver.get_current_target().warp_size,
        global_scratch_size=0,
        global_scratch_align=1,
        profile_scratch_size=0,
        profile_scratch_align=1,
        launch_cooperative_grid=False,
        launch_pdl=False,
    )
    driver.launcher_cls(source, metadata)


def installed_language() -> Language:
    """Return what the installed Triton has: functions for numbers, functions of libdevice, and often used names that it lacks."""
    functions = [
        name
        for name, member in vars(tl.math).items()
        if inspect.isfunction(member) and hasattr(tl, name) and not name.startswith("_")
    ]
    beyond = [name for name in FURTHER if not hasattr(tl, name)]
    return Language(
        version=triton.__version__,
        functions=tuple(sorted(functions)),
        libdevice={
            backend: tuple(name for name in beyond if hasattr(library, name))
            for backend in ("cuda", "hip")
            for library in [importlib.import_module(f"triton.language.extra.{backend}.libdevice")]
        },
        absent=tuple(name for name in OFTEN_USED if not hasattr(tl, name)),
    )
