"""The environment of the harness's processes: an explicit list, so that no API key reaches a judge or a guest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .worker_start import PACKAGES

PROJECT_ROOT = Path(__file__).resolve().parents[2]
"""Working folder of every `python -m harness...`, so that the child imports this source tree."""
PASSED = (
    "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "TMPDIR", "CC",
    "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "HIP_CLANG_PATH", "HIP_DEVICE_LIB_PATH", "DEVICE_LIB_PATH", "HSA_PATH",
    "CUDA_HOME", "CUDA_PATH",
    "HSA_ENABLE_IPC_MODE_LEGACY", "HSA_FORCE_FINE_GRAIN_PCIE", "HSA_NO_SCRATCH_RECLAIM", "HSA_XNACK",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_LIBHIP_PATH", "TRITON_LIBCUDA_PATH",
    "MIOPEN_USER_DB_PATH",
)  # fmt: skip
"""Without these, vendors' builds of torch and triton do not load, or see GPUs that the user did not choose."""

SET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",
    "HOME": "/nonexistent",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
}
"""Libraries run one thread each, because a pool of threads does not survive a fork."""

INTERPRET = "TRITON_INTERPRET"
DROPPED = "WAVEDECK_DROPPED"
"""Names (never values) of variables that would change a GPU's or a compiler's results and were not passed on."""

_RESULT_PREFIXES = (
    "AMD_", "AMDGCN_", "CUBLAS_", "CUDA_", "CUDNN_", "GPU_", "HIP_", "HIPBLASLT_", "HSA_", "MIOPEN_", "NVIDIA_",
    "PYTORCH_", "ROCBLAS_", "ROCM_", "ROCR_", "TORCH_", "TORCHINDUCTOR_", "TRITON_",
)  # fmt: skip
_RESULT_NAMES = ("LD_PRELOAD", "LLVM_IR_ENABLE_DUMP", "MLIR_ENABLE_DUMP", "DISABLE_LLVM_OPT")
_MADE_BY_LIBRARIES = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR")
"""Variables that torch sets in its process during import."""
_BY_SCRATCH = ("TRITON_HOME", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "HSA_COREDUMP_PATTERN")


def worker_environment(*, interpret: bool, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a worker. Dropped variables of `source` that would change results are listed in `DROPPED`.

    Such variables serialise kernels (`AMD_SERIALIZE_KERNEL`, `HIP_LAUNCH_BLOCKING`, `CUDA_LAUNCH_BLOCKING`), report a different
    GPU (`HSA_OVERRIDE_GFX_VERSION`) or override Triton's compiler.
    """
    source = os.environ if source is None else source
    environment = {name: source[name] for name in PASSED if name in source} | SET
    if interpret:
        environment[INTERPRET] = "1"
    dropped = sorted(name for name in source if _changes_results(name) and name not in environment)
    if dropped:
        environment[DROPPED] = ",".join(dropped)
    return environment


def dropped_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that `worker_environment` dropped, as a worker sees them."""
    return tuple(name for name in environment.get(DROPPED, "").split(",") if name)


def unexpected_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted names that are on none of the lists of this module."""
    listed = {*PASSED, *SET, INTERPRET, DROPPED, PACKAGES, *_BY_SCRATCH, *_MADE_BY_LIBRARIES}
    return tuple(sorted(name for name in environment if name not in listed))


def _changes_results(name: str) -> bool:
    return name.startswith(_RESULT_PREFIXES) or name in _RESULT_NAMES
