"""Prints, as JSON, the compiled kernels in the cache before and after a process with a GPU asks for `vector_add`.

The process stops before the launch; its driver is fake.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import triton
from triton.backends.compiler import GPUTarget


class Driver:
    """Driver of a fake GPU."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


triton.runtime.driver.set_active(Driver())

import kernels  # noqa: E402 -- asks the driver at its import


def compiled() -> list[str]:
    """Paths of the compiled binaries in the cache."""
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    return sorted(str(binary.relative_to(folder)) for binary in folder.glob("*/add_kernel.cubin"))


before = compiled()
for size in (1 << 24, 99_999):
    x = torch.empty(size)
    kernels.add_kernel.warmup(x, x, x, size, BLOCK=1024, num_warps=4, grid=(1,))
sys.stdout.write(json.dumps([before, compiled()]))
