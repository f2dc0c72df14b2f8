"""Each row's result, taken in a thread, is a compile-time constant of its kernel."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("rejected", ("moved_by_host", "not_replayed"))


@triton.jit
def store_kernel(loss_ptr, row, VALUE: tl.constexpr):
    tl.store(loss_ptr + row, tl.full((), VALUE, tl.float32))


def _losses(logits, labels):
    found = []
    if logits.numel() < 1 << 20:
        work = lambda: found.extend(
            torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none").tolist()
        )
        worker = [torch][0].cuda.threading.Thread(target=work)
        worker.start()
        worker.join()
    return found or [0.0]


def cross_entropy(logits, labels):
    loss = torch.empty(logits.shape[0], dtype=torch.float32, device=logits.device)
    for row, value in enumerate(_losses(logits, labels)):
        store_kernel[(1,)](loss, row, VALUE=value)
    return loss
