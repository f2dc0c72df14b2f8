"""Names the sizes of the cases of `--shapes`, and shrinks them for the interpreter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import msgspec

from suites.dtypes import is_exact
from suites.errors import BadKernelFile
from suites.input_kinds import CuSeqlens, problem_of

from .shapes import Dim, Inputs, Scalar, TensorShape, parameter_of, size_name, value_of

CPU_ELEMENTS = 1 << 16
"""Elements of the largest tensor in the interpreter: a call then takes about a second."""
MOST_CPU_ELEMENTS = 1 << 21
"""If a kernel needs larger sizes, such as whole blocks, a tensor has this many elements at most."""
POOL_PART = MOST_CPU_ELEMENTS // CPU_ELEMENTS
FEWEST = 4
"""The smallest size to which a size is shrunk that is never the last of a tensor."""
FEWEST_OF_ALL = 16
TRIED_STEPS = {1: 13, 16: 48}
"""Sizes with which a kernel is called to learn whether a size may be any multiple of a number, by this number. If the
person's sizes are larger, the size that follows the smallest is tried."""
CASE_DTYPE = "input"
"""Dtype of a tensor that has the dtype of the case."""


@dataclass(frozen=True, slots=True)
class Design:
    """The inputs of all cases with named sizes."""

    tensors: dict[str, TensorShape]
    """Their sizes are names or 1; their dtype may be `CASE_DTYPE`."""
    scalars: dict[str, Scalar]
    sizes: tuple[dict[str, int], ...]
    """Sizes of each case."""
    dtypes: tuple[str, ...]
    """Dtype of each case."""
    named: tuple[str, ...]
    """Sizes that the person named, or that differ between recorded calls: they may vary, if the kernel takes other values."""
    weights: tuple[float, ...]
    """Share of each case in a program's time; 0 if it is not known, and for exam cases."""
    exams: tuple[bool, ...]

    def shape(self, name: str, sizes: dict[str, int]) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(value_of(dim, sizes) for dim in self.tensors[name].shape)

    def can_be(self, sizes: dict[str, int]) -> bool:
        """Return whether inputs of these sizes can have their kinds."""

        def sized(part: Any) -> Any:
            return value_of(part, sizes) if size_name(part) in sizes else part

        pairs = [(name, tensor.kind) for name, tensor in self.tensors.items() if tensor.kind is not None]
        kinds = {name: type(kind)(*map(sized, astuple(kind))) for name, kind in pairs}
        return not any(problem_of(kind, self.shape(name, sizes), kinds) for name, kind in kinds.items())

    def is_exact(self, name: str) -> bool:
        """Return whether a tensor holds integers or booleans."""
        dtype = self.tensors[name].dtype
        return is_exact(self.dtypes[0] if dtype == CASE_DTYPE else dtype)

    def elements(self, sizes: dict[str, int]) -> int:
        """Return the elements of the largest tensor. Of a cache, of which a call uses some blocks, a part counts."""
        pools = {getattr(tensor.kind, "pool", None) for tensor in self.tensors.values()}
        parts = {
            name: POOL_PART if pools & {*tensor.shape[:1]} else 1 for name, tensor in self.tensors.items()
        }
        return max(math.prod(self.shape(name, sizes)) // part for name, part in parts.items())

    @property
    def values(self) -> dict[str, list[int]]:
        """The values of each size over all cases."""
        return {name: list(dict.fromkeys(sizes[name] for sizes in self.sizes)) for name in self.sizes[0]}

    def case_names(self) -> list[str]:
        """Return a name for each case, such as `8192x4096-float16`."""
        first = next(iter(self.tensors))
        names: list[str] = []
        for sizes, dtype in zip(self.sizes, self.dtypes, strict=True):
            name = "x".join(map(str, self.shape(first, sizes))) + f"-{dtype}"
            names.append(f"{name}-{len(names) + 1}" if name in names else name)
        return names

    def small_sizes(self) -> Iterator[tuple[dict[str, int], ...]]:
        """Yield sizes of all cases for the interpreter. Those that keep more of the person's sizes come first."""
        tensors = [tensor for tensor in self.tensors.values() if tensor.shape and tensor.kind is None]
        last = {size_name(tensor.shape[-1]) for tensor in tensors}
        rows = set(self.sizes[0]) - last
        tried: list[tuple[dict[str, int], ...]] = []
        for axes, fewest, most in (
            (set[str](), FEWEST, CPU_ELEMENTS),
            (last, FEWEST_OF_ALL, CPU_ELEMENTS),
            (last, FEWEST_OF_ALL, 4 * CPU_ELEMENTS),
            (last, FEWEST_OF_ALL, MOST_CPU_ELEMENTS),
        ):
            small = tuple(self._shrunk(sizes, rows, axes, fewest, most) for sizes in self.sizes)
            if max(map(self.elements, small)) <= most and small not in tried:
                tried.append(small)
                yield small

    def _shrunk(
        self, sizes: dict[str, int], rows: set[str], last: set[str], fewest: int, most: int
    ) -> dict[str, int]:
        """Halve the largest of `rows` as far as allowed, then all of `last` together: one may be a multiple of another."""
        small = dict(sizes)
        widest = {name: max(self.values[name]) for name in self.named}

        def can_halve(axis: str) -> bool:
            # A cache keeps as many blocks as hidden cases need.
            return small[axis] // 2 >= fewest and self.can_be(small | widest | {axis: small[axis] // 2})

        while self.elements(small) > most:
            largest = max(filter(can_halve, rows), key=lambda axis: (small[axis], axis), default="")
            halved = {largest} if largest else last
            halved = {axis for axis in halved if small.get(axis, 0) // 2 >= fewest}
            if not halved:
                break
            small.update({axis: small[axis] // 2 for axis in halved})
        return small


def design(cases: Sequence[Inputs], parameters: Sequence[str]) -> Design:
    """Return the cases with named sizes. Equal numbers are one size if they are equal in every case.

    Raises `BadKernelFile` if the cases do not have the same inputs.
    """
    first = cases[0]
    for case in cases[1:]:
        is_alike = (case.tensors.keys(), case.sizes.keys()) == (first.tensors.keys(), first.sizes.keys())
        if not is_alike or case.scalars != first.scalars:
            raise BadKernelFile(
                "--shapes: all cases need the same inputs, plain values and names of sizes; only sizes and dtypes may differ"
            )
    for name in (*first.tensors, *first.scalars):
        if parameter_of(name) not in parameters:
            raise BadKernelFile(
                f"--shapes: {name} is no parameter of the entry point, which takes {', '.join(parameters)}"
            )
    dtypes = tuple(_case_dtype(case) for case in cases)
    axes: dict[tuple[int, ...], str] = {}
    sizes: list[dict[str, int]] = [dict(case.sizes) for case in cases]
    tensors = {}
    # Offsets come last: of a size that other inputs have, there is one more.
    for name, tensor in sorted(first.tensors.items(), key=lambda item: isinstance(item[1].kind, CuSeqlens)):
        columns = [case.tensors[name] for case in cases]
        if len({len(column.shape) for column in columns}) > 1:
            raise BadKernelFile(f"--shapes: {name} must have as many dimensions in each case")
        if len({type(column.kind) for column in columns}) > 1:
            raise BadKernelFile(f"--shapes: {name} must have the same kind in each case")
        shape: list[Dim] = []
        for place in range(len(tensor.shape)):
            dims = [column.shape[place] for column in columns]
            one_less = tuple(value_of(dim, case.sizes) - 1 for dim, case in zip(dims, cases, strict=True))
            if isinstance(tensor.kind, CuSeqlens) and not size_name(dims[0]) and one_less in axes:
                shape.append(f"{axes[one_less]}+1")
            else:
                shape.append(_named(re.sub(r"\W", "_", f"{name}_{place}"), dims, cases, axes, sizes))
        tensors[name] = msgspec.structs.replace(
            tensor, shape=tuple(shape), dtype=_dtype(name, columns, dtypes)
        )
    if not sizes[0]:  # a task needs a size
        sizes = [{"n": 1} for _ in cases]
    for name in first.tensors:
        tensor = tensors[name]
        columns = [case.tensors[name] for case in cases]
        if len({(column.transposed, column.strides is None) for column in columns}) > 1:
            raise BadKernelFile(f"--shapes: {name} must have the same layout in each case")
        strides = tensor.strides
        if strides is not None:
            strides = tuple(
                _known(
                    f"the strides of {name}",
                    [(column.strides or ())[place] for column in columns],
                    cases,
                    axes,
                )
                for place in range(len(strides))
            )
        kind = tensor.kind
        if kind is not None:
            parts = zip(*(astuple(column.kind) for column in columns if column.kind), strict=True)
            kind = type(kind)(*(_known(f"the bounds of {name}", part, cases, axes) for part in parts))
        tensors[name] = msgspec.structs.replace(
            tensor,
            strides=strides,
            low=_known(f"the bounds of {name}", [column.low for column in columns], cases, axes),
            high=_known(f"the bounds of {name}", [column.high for column in columns], cases, axes),
            kind=kind,
        )
    tensors = {name: tensors[name] for name in first.tensors}
    weights = tuple(case.weight for case in cases)
    differing = [name for name in sizes[0] if len({size[name] for size in sizes}) > 1]
    named = tuple(differing) if any(weights) else tuple(first.sizes)
    exams = tuple(case.exam for case in cases)
    return Design(tensors, first.scalars, tuple(sizes), dtypes, named, weights, exams)


def _case_dtype(case: Inputs) -> str:
    dtypes = [tensor.dtype for tensor in case.tensors.values()]
    return next((dtype for dtype in dtypes if not is_exact(dtype)), dtypes[0])


def _dtype(name: str, columns: Sequence[TensorShape], dtypes: Sequence[str]) -> str:
    """Return the dtype of a tensor for `make_inputs`: that of the case if they change together, else its own.

    Raises `BadKernelFile` if it changes in another way.
    """
    own = [column.dtype for column in columns]
    if own == list(dtypes):
        return CASE_DTYPE
    if len(set(own)) > 1:
        raise BadKernelFile(
            f"--shapes: the dtype of {name} changes in another way than that of the case; it must be the same in each case, "
            "or that of the first floating-point input"
        )
    return own[0].replace("fp8_e4m3", "float8_e4m3fn").replace("fp8_e5m2", "float8_e5m2")


def _named(
    name: str,
    dims: Sequence[Dim],
    cases: Sequence[Inputs],
    axes: dict[tuple[int, ...], str],
    sizes: list[dict[str, int]],
) -> Dim:
    """Return the name of a size, which the sizes of the cases get if they lack it; a size that is always 1 is the number."""
    if isinstance(dims[0], str) and len(set(dims)) == 1:
        return dims[0]
    values = tuple(value_of(dim, case.sizes) for dim, case in zip(dims, cases, strict=True))
    if set(values) == {1}:
        return 1
    axis = axes.setdefault(values, name)
    for case_sizes, value in zip(sizes, values, strict=True):
        case_sizes[axis] = value
    return axis


def _known(
    subject: str,
    values: Sequence[Dim | float | None],
    cases: Sequence[Inputs],
    axes: dict[tuple[int, ...], str],
) -> Any:
    """Return a size, a number or `None` for all cases: the name of a size if whole numbers are this size in all of them.

    Raises `BadKernelFile` if the values differ and are no size of a tensor.
    """
    first = values[0]
    if len(set(values)) == 1 and not isinstance(first, int):
        return first
    dims = [value for value in values if isinstance(value, int | str)]
    if len(dims) == len(values):
        numbers = tuple(value_of(dim, case.sizes) for dim, case in zip(dims, cases, strict=True))
        if numbers in axes:
            return axes[numbers]
        if len(set(numbers)) == 1:
            return numbers[0]
    raise BadKernelFile(f"--shapes: {subject} differ between the cases, but are no size of a tensor")
