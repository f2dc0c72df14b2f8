"""Prints the folders of compiled kernels before and after a process on a GPU asks for `vector_add`'s, up to its launch; run by a test."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import triton
from triton.backends.compiler import GPUTarget


class Driver:
    """Of a GPU that is not here."""

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
    """Places of binaries, which their keys name."""
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    return sorted(str(one.relative_to(folder)) for one in folder.glob("*/*.cubin"))


before = compiled()
for size in (1 << 24, 99_999):
    x = torch.empty(size)
    kernels.add_kernel.warmup(x, x, x, size, BLOCK=1024, num_warps=4, grid=(1,))
sys.stdout.write(json.dumps([before, compiled()]))
