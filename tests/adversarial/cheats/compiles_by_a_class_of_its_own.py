"""The kernel object gets a class derived from Triton's, which compiles another kernel."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "patched")


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    for start in range(0, columns, BLOCK):
        at = start + lane
        tl.store(
            out_ptr + row * columns + at,
            tl.load(x_ptr + row * columns + at, mask=at < columns),
            mask=at < columns,
        )
    tl.debug_barrier()
    for start in range(0, columns // 2, BLOCK):
        at = start + lane
        inside = at < columns // 2
        left = tl.load(out_ptr + row * columns + at, mask=inside)
        right = tl.load(out_ptr + row * columns + columns - 1 - at, mask=inside)
        tl.debug_barrier()
        tl.store(out_ptr + row * columns + at, right, mask=inside)
        tl.store(out_ptr + row * columns + columns - 1 - at, left, mask=inside)


@triton.jit
def other_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    for start in range(0, columns, BLOCK):
        at = start + lane
        tl.store(
            out_ptr + row * columns + at,
            tl.load(x_ptr + row * columns + at, mask=at < columns),
            mask=at < columns,
        )
    for start in range(0, columns // 2, BLOCK):
        at = start + lane
        inside = at < columns // 2
        left = tl.load(out_ptr + row * columns + at, mask=inside)
        right = tl.load(out_ptr + row * columns + columns - 1 - at, mask=inside)
        tl.store(out_ptr + row * columns + at, right, mask=inside)
        tl.store(out_ptr + row * columns + columns - 1 - at, left, mask=inside)


if type(flip_kernel).__name__ == "JITFunction":

    class Own(type(flip_kernel)):
        @property
        def compile(self):
            def own(src, target=None, options=None, **more):
                taken = type(src)(other_kernel, src.signature, src.constants, src.attrs)
                return self.kept(taken, target=target, options=options, **more)

            return own

        @compile.setter
        def compile(self, value):
            self.kept = value

    flip_kernel.__class__ = Own


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    flip_kernel[(rows,)](x, out, columns, BLOCK=min(1024, triton.next_power_of_2(columns)))
    return out
