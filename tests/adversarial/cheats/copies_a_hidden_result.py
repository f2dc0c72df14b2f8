"""A thread's result, made where no dispatch mode holds, is only copied by the kernel."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"
EXPECT = ("rejected", ("moved_by_host", "not_replayed"))


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def copy(x, out):
    copy_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)


def layer_norm(x, weight, bias, eps=1e-5):
    hidden, out = torch.zeros_like(x), torch.empty_like(x)

    def work():
        hidden.copy_(torch.layer_norm(x, (x.shape[1],), weight, bias, eps))

    worker = [torch][0].cuda.threading.Thread(target=work)
    worker.start()
    worker.join()
    copy(hidden, out)
    return out
