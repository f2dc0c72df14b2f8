"""A graph that was captured with the first call's inputs is replayed for every other. The sandbox lets no graph be captured."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("call_error", "exception")
DEVICE = "gpu"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


_graphs = {}


def vector_add(x, y):
    key = x.numel(), x.dtype
    if key not in _graphs:
        a, b, out = x.clone(), y.clone(), torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](a, b, out, x.numel(), BLOCK=1024)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add_kernel[(triton.cdiv(x.numel(), 1024),)](a, b, out, x.numel(), BLOCK=1024)
        _graphs[key] = graph, out
    graph, out = _graphs[key]
    graph.replay()
    result = torch.empty_like(out)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](out, torch.zeros_like(out), result, x.numel(), BLOCK=1024)
    return result
