"""The environment of the harness's own processes: built from nothing, so that no key travels to a judge or a guest."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PASSED = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "TMPDIR",
    "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "CUDA_HOME", "CUDA_PATH", "HSA_ENABLE_IPC_MODE_LEGACY",
    "TRITON_PTXAS_PATH", "TRITON_LIBHIP_PATH",
)  # fmt: skip
"""Without these, vendors' builds of torch and triton do not load. Debugging switches that change results stay behind."""


def worker_environment(*, interpret: bool, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a fork server. One thread each: a pool of threads would not survive the fork."""
    source = os.environ if source is None else source
    environment = {name: source[name] for name in _PASSED if name in source}
    environment |= {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "HOME": "/nonexistent",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    return environment
