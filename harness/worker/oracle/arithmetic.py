"""Two ways to compute a PyTorch function: exactly, and with the rounding errors that careful arithmetic has."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_map_only

from harness.worker.kit.operator_mode import OperatorMode

EPS = torch.finfo(torch.float32).eps
"""Careful kernels compute in float32."""
TF32_EPS = 2.0**-10
GROWTH = 0.5
"""The rounding errors of a sum of n terms are about this times sqrt(n) units of a term."""
_NORMS = ("native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm")
_STEPS = get_decompositions([getattr(torch.ops.aten, name) for name in _NORMS])
"""Operators that are computed in steps: a mean that is rounded is an error that no change of the inputs has."""
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "dot", "mv", "addmv")
_MANTISSA = {torch.float16: 10, torch.bfloat16: 7, torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}
_MANTISSA |= {torch.float8_e4m3fnuz: 3, torch.float8_e5m2fnuz: 2}


class DrawsNumbers(Exception):
    """The function draws random numbers, so that it has no one right answer."""


@contextmanager
def exactly() -> Iterator[None]:
    """Compute floating-point operators in float64; a cast to another floating-point dtype changes nothing."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with sdpa_kernel(SDPBackend.MATH), _Exact():
            yield
    finally:
        torch.set_default_dtype(before)


class _Exact(OperatorMode):  # type: ignore[no-untyped-call]
    def _run(self, func: Any, name: str, args: Any, named: dict[str, Any]) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise DrawsNumbers(name)
        args, named = tree_map_only(torch.Tensor, widened, (args, named))
        return func(*args, **_in_dtype(named, torch.float64))


def widened(value: torch.Tensor) -> torch.Tensor:
    """Return a floating-point tensor in float64, other tensors as they are."""
    return value.double() if value.is_floating_point() else value


class Careful(OperatorMode):  # type: ignore[no-untyped-call]
    """Each operator that rounds does so at random, to the dtype that the function gives its result.

    Its operands move: those of a product by `operand_eps`, all by `least_eps`, further in a sum of many terms. Operands of a
    product move towards 0 if `least_eps` is more than float32 has, because matrix units cut them: such errors add up.
    """

    def __init__(self, generator: torch.Generator, operand_eps: float, least_eps: float = EPS) -> None:
        super().__init__()
        self._generator = generator
        self._operand_eps = operand_eps
        self._least_eps = least_eps
        self._rounds: list[bool] = []
        """Whether an operator rounds, in the order of the first call."""
        self._at = 0
        """Number of operators that the current call has run."""

    def call(self, function: Callable[[], Any]) -> Any:
        """Call the function; each call has other errors."""
        self._at = 0
        with sdpa_kernel(SDPBackend.MATH), self:
            return function()

    def _run(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run an operator with the error of careful arithmetic: inputs move at random, and results are rounded at random.

        Views, and operators that round nothing, run as they are. Inputs stay unchanged, except those that the operator itself
        writes.
        """
        if func in _STEPS:
            with self:
                return _STEPS[func](*args, **kwargs)
        floats = _floats((args, kwargs))
        is_view = any(part.alias_info and not part.alias_info.is_write for part in func._schema.returns)
        if is_view or not floats or not self._is_rounding(func, args, kwargs, floats):
            return func(*args, **kwargs)
        dtype = _result_dtype(func, args, kwargs, floats)
        eps = self._move(func, name, floats)
        middle = -0.5 * self._least_eps if name in _PRODUCTS and self._least_eps > EPS else 0.0
        copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

        def moved(value: torch.Tensor) -> torch.Tensor:
            """Return a wider copy of an input, moved at random; note which input it is a copy of."""
            if not value.is_floating_point():
                return value
            wide = value.to(torch.float64 if value.dtype is torch.float64 else torch.float32, copy=True)
            copies[id(value)] = (value, wide)
            return wide.mul_(1 + middle + eps * self._dither(wide))

        result = self._wide(func, args, kwargs, moved)
        written = _written(func, args, kwargs)
        for value in written:
            value.copy_(self._rounded(copies[id(value)][1], value.dtype))
        originals = {id(wide): value for value, wide in copies.values()}
        return tree_map_only(
            torch.Tensor, lambda value: originals.get(id(value), self._rounded(value, dtype)), result
        )

    def _is_rounding(self, func: Any, args: Any, kwargs: Any, floats: Sequence[torch.Tensor]) -> bool:
        """True unless all values of the exact result are values of its dtype, as after a copy or a comparison."""
        self._at += 1
        if self._at > len(self._rounds):
            dtype = _result_dtype(func, args, kwargs, floats)
            exact = self._wide(func, args, kwargs, lambda value: widened(value.clone()))
            self._rounds.append(
                any(
                    not torch.equal(value.nan_to_num(), value.to(dtype).double().nan_to_num())
                    for value in _floats(exact)
                )
            )
        return self._rounds[self._at - 1]

    def _wide(self, func: Any, args: Any, kwargs: Any, widen: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        args, kwargs = tree_map_only(torch.Tensor, widen, (args, dict(kwargs)))
        wide = max((value.dtype for value in _floats((args, kwargs))), key=lambda dtype: dtype.itemsize)
        return func(*args, **_in_dtype(kwargs, wide))

    def _move(self, func: Any, name: str, floats: Sequence[torch.Tensor]) -> float:
        """Return how far inputs move, as a share of their values: one rounding of an element-wise operator, more for a sum.

        An error of a sum grows with the square root of the terms. Operands of products move by at least their own precision.
        """
        if torch.Tag.pointwise in func.tags:
            return self._least_eps
        terms = max(max(value.shape, default=1) for value in floats)
        eps = max(EPS * max(1.0, GROWTH * math.sqrt(terms)), self._least_eps)
        return max(eps, self._operand_eps) if name in _PRODUCTS else eps

    def _dither(self, like: torch.Tensor) -> torch.Tensor:
        """Return numbers from -0.5 to 0.5."""
        return (
            torch.rand(like.shape, generator=self._generator, device=like.device, dtype=torch.float32) - 0.5
        )

    def _rounded(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Round each value at random to one of its two neighbours in `dtype`, the closer one more often.

        Adds a random number below the last place that `dtype` keeps to the bits of the float32, and cuts off the rest. For
        float32 and float64, values move by up to half a unit in the last place. Tensors that are not floating-point stay
        unchanged.
        """
        if not value.is_floating_point():
            return value
        if dtype not in _MANTISSA:
            return (value * (1 + torch.finfo(dtype).eps * self._dither(value))).to(dtype)
        low = 1 << 23 - _MANTISSA[dtype]
        drawn = torch.randint(
            low, value.shape, generator=self._generator, device=value.device, dtype=torch.int32
        )
        return ((value.float().view(torch.int32) + drawn) & -low).view(torch.float32).to(dtype)


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Return the tensors that an operator writes in place."""
    parts = func._schema.arguments
    pairs = [*zip(parts, args, strict=False), *((part, kwargs.get(part.name)) for part in parts)]
    return _floats([value for part, value in pairs if part.alias_info and part.alias_info.is_write])


def _result_dtype(func: Any, args: Any, kwargs: Any, floats: Sequence[torch.Tensor]) -> torch.dtype:
    """Return the dtype that an operator gives its result: the one asked for, that of what it writes, or that of its inputs."""
    dtype = kwargs.get("dtype")
    if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
        return dtype
    values = _written(func, args, kwargs) or [value for value in floats if value.dim()] or floats
    return functools.reduce(torch.promote_types, (value.dtype for value in values))


def _in_dtype(kwargs: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Return the keyword arguments; a floating-point `dtype` among them is replaced."""
    asked = kwargs.get("dtype")
    is_float = isinstance(asked, torch.dtype) and asked.is_floating_point
    return {**kwargs, "dtype": dtype} if is_float else kwargs


def _floats(values: Any) -> list[torch.Tensor]:
    return [
        value
        for value in tree_flatten(values)[0]
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
