"""The environment of the harness's own processes: built from nothing, so that no key travels to a judge or a guest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[2]
"""Working folder of every `python -m harness...`, so that the child imports this very tree."""
PASSED = (
    "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "TMPDIR", "CC",
    "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "HIP_CLANG_PATH", "HIP_DEVICE_LIB_PATH", "DEVICE_LIB_PATH", "HSA_PATH",
    "CUDA_HOME", "CUDA_PATH",
    "HSA_ENABLE_IPC_MODE_LEGACY", "HSA_FORCE_FINE_GRAIN_PCIE", "HSA_NO_SCRATCH_RECLAIM", "HSA_XNACK",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_LIBHIP_PATH", "TRITON_LIBCUDA_PATH",
    "MIOPEN_USER_DB_PATH",
)  # fmt: skip
"""Without these, vendors' builds of torch and triton do not load, or see other GPUs than the person chose."""

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
"""One thread each: a pool of threads would not survive the fork."""

INTERPRET = "TRITON_INTERPRET"
DROPPED = "WAVEDECK_DROPPED"
"""Names, never values, of the variables that change what a GPU or a compiler does and were not passed on."""

_TELLING = (
    "AMD_", "AMDGCN_", "CUBLAS_", "CUDA_", "CUDNN_", "GPU_", "HIP_", "HIPBLASLT_", "HSA_", "MIOPEN_", "NVIDIA_",
    "PYTORCH_", "ROCBLAS_", "ROCM_", "ROCR_", "TORCH_", "TORCHINDUCTOR_", "TRITON_",
)  # fmt: skip
_TELLING_NAMES = ("LD_PRELOAD", "LLVM_IR_ENABLE_DUMP", "MLIR_ENABLE_DUMP", "DISABLE_LLVM_OPT")
_MADE_BY_LIBRARIES = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR")
"""What torch sets in its own process while it is imported."""
_BY_SCRATCH = ("TRITON_HOME", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "HSA_COREDUMP_PATTERN")


def worker_environment(*, interpret: bool, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a fork server; what else in `source` would change results stays behind and is named in `DROPPED`.

    Among those are switches that serialise kernels (`AMD_SERIALIZE_KERNEL`, `HIP_LAUNCH_BLOCKING`,
    `CUDA_LAUNCH_BLOCKING`), pretend another GPU (`HSA_OVERRIDE_GFX_VERSION`) or override Triton's compiler.
    """
    source = os.environ if source is None else source
    environment = {name: source[name] for name in PASSED if name in source} | SET
    if interpret:
        environment[INTERPRET] = "1"
    dropped = sorted(name for name in source if _tells(name) and name not in environment)
    if dropped:
        environment[DROPPED] = ",".join(dropped)
    return environment


def dropped_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names that `worker_environment` left behind, as a worker sees them."""
    return tuple(name for name in environment.get(DROPPED, "").split(",") if name)


def unexpected_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names that nobody passed on, set or knows of, in order."""
    known = {*PASSED, *SET, INTERPRET, DROPPED, *_BY_SCRATCH, *_MADE_BY_LIBRARIES}
    return tuple(sorted(name for name in environment if name not in known))


def _tells(name: str) -> bool:
    return name.startswith(_TELLING) or name in _TELLING_NAMES
