"""Names the sizes of the cases of `--shapes`, and shrinks them for the interpreter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from suites.dtypes import is_exact
from suites.errors import BadKernelFile

from .shapes import Dim, Inputs, Scalar, TensorShape, value_of

CPU_ELEMENTS = 1 << 16
"""Elements of the largest tensor in the interpreter: a call then takes about a second."""
MOST_CPU_ELEMENTS = 1 << 21
"""If a kernel needs larger sizes, such as whole blocks, a tensor has this many elements at most."""
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

    def is_exact(self, name: str) -> bool:
        """Return whether a tensor holds integers or booleans."""
        dtype = self.tensors[name].dtype
        return is_exact(self.dtypes[0] if dtype == CASE_DTYPE else dtype)

    def elements(self, sizes: dict[str, int]) -> int:
        """Return the elements of the largest tensor."""
        return max(math.prod(self.shape(name, sizes)) for name in self.tensors)

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
        last = {_name(tensor.shape[-1]) for tensor in self.tensors.values() if tensor.shape}
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
        while self.elements(small) > most:
            largest = max(rows, key=lambda axis: (small[axis], axis), default="")
            halved = {largest} if largest and small[largest] // 2 >= fewest else last
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
        if name not in parameters:
            raise BadKernelFile(
                f"--shapes: {name} is no parameter of the entry point, which takes {', '.join(parameters)}"
            )
    dtypes = tuple(_case_dtype(case) for case in cases)
    axes: dict[tuple[int, ...], str] = {}
    sizes: list[dict[str, int]] = [dict(case.sizes) for case in cases]
    tensors = {}
    for name, tensor in first.tensors.items():
        columns = [case.tensors[name] for case in cases]
        if len({len(column.shape) for column in columns}) > 1:
            raise BadKernelFile(f"--shapes: {name} must have as many dimensions in each case")
        shape = []
        for place in range(len(tensor.shape)):
            dims = [column.shape[place] for column in columns]
            shape.append(_named(f"{name}_{place}", dims, cases, axes, sizes))
        tensors[name] = msgspec.structs.replace(
            tensor, shape=tuple(shape), dtype=_dtype(name, columns, dtypes)
        )
    if not sizes[0]:  # a task needs a size
        sizes = [{"n": 1} for _ in cases]
    for name, tensor in tensors.items():
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
        tensors[name] = msgspec.structs.replace(
            tensor,
            strides=strides,
            low=_bound(name, [column.low for column in columns], cases, axes),
            high=_bound(name, [column.high for column in columns], cases, axes),
        )
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
    subject: str, dims: Sequence[Dim], cases: Sequence[Inputs], axes: dict[tuple[int, ...], str]
) -> Dim:
    """Return the name of the size that these numbers are in all cases, or the number itself if it is the same in all.

    Raises `BadKernelFile` if they differ and are no size of a tensor.
    """
    if isinstance(dims[0], str) and len(set(dims)) == 1:
        return dims[0]
    values = tuple(value_of(dim, case.sizes) for dim, case in zip(dims, cases, strict=True))
    if values in axes:
        return axes[values]
    if len(set(values)) > 1:
        raise BadKernelFile(f"--shapes: {subject} differ between the cases, but are no size of a tensor")
    return values[0]


def _bound(
    name: str,
    bounds: Sequence[Dim | float | None],
    cases: Sequence[Inputs],
    axes: dict[tuple[int, ...], str],
) -> Dim | float | None:
    """Return one bound of an index tensor's values for all cases: a number or a size's name.

    Whole numbers that differ between the cases must be sizes of them. Raises `BadKernelFile`.
    """
    if all(isinstance(bound, int | str) for bound in bounds):
        return _known(
            f"the bounds of {name}", [bound for bound in bounds if isinstance(bound, int | str)], cases, axes
        )
    if len(set(bounds)) > 1:
        raise BadKernelFile(f"--shapes: the bounds of {name} differ between the cases")
    return bounds[0]


def _name(dim: Dim) -> str:
    return dim.rpartition("*")[2] if isinstance(dim, str) else ""
