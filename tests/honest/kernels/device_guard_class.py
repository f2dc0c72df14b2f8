"""A decorator makes inputs contiguous and enters the author's subclass of `torch.cuda.device`."""

import functools

import torch
import triton
import triton.language as tl

TASK = "layer_norm"


class DeviceOf(torch.cuda.device):
    """Does nothing if the current device is already the right device."""

    def __init__(self, tensor):
        self.wanted = tensor.device
        super().__init__(tensor.device if tensor.is_cuda else -1)


def guarded(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        args = tuple(arg.contiguous() if isinstance(arg, torch.Tensor) else arg for arg in args)
        kwargs = {
            name: arg.contiguous() if isinstance(arg, torch.Tensor) else arg for name, arg in kwargs.items()
        }
        tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
        with DeviceOf(tensors[0]):
            return function(*args, **kwargs)

    return wrapper


@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    deviation = tl.where(mask, x - tl.sum(x, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(deviation * deviation, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = deviation * scale * weight + bias
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@guarded
def layer_norm(x, weight, bias, eps=1e-5):
    rows, columns = x.shape
    out = torch.empty_like(x)
    norm_kernel[(rows,)](x, weight, bias, out, columns, eps, BLOCK=triton.next_power_of_2(columns))
    return out
