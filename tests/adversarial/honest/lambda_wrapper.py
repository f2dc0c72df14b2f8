"""The entry point is a lambda; the function inside makes views and a nested launcher, and asks the device for its options."""

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
        tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def _warps(device):
    major, _ = torch.cuda.get_device_capability(device)
    target = triton.runtime.driver.active.get_current_target()
    free, total = torch.cuda.mem_get_info()
    assert major >= 7 and free <= total and torch.cuda.is_available()
    return 8 if target.backend == "hip" and "MI300" in torch.cuda.get_device_name(0) else 4


def _flip(x, out):
    stream = torch.cuda.current_stream()
    rows = x.unsqueeze(0).flatten(0, 1).narrow(0, 0, x.shape[0])
    into = out.unsqueeze(0).squeeze(0)

    def launch(block):
        flip_kernel[(rows.size(0),)](rows, into, rows.size(-1), BLOCK=block, num_warps=_warps(x.device))

    launch(1024 if rows.size(-1) > 512 else 64)
    stream.synchronize()
    return into.view_as(x).reshape(x.shape)


flip = lambda x: _flip(x, torch.empty_like(x))
