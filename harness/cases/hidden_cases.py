"""
The cases that an evaluation judges: a task's own, hidden cases made from them, and exam cases for a task without any. Torch-free.

The name of a hidden case says its kind, and each kind finds a bug that a task's own cases may miss:

| kind | finds kernels that |
| --- | --- |
| rough values, CASE | recognise the task's sizes, and assume mild values or default parameters there |
| ragged DTYPE | have no mask for sizes that no block divides, or cache by shape across dtypes |
| small, of parameters | fail below one block, or on inputs that require gradients |
| AXIS=1, all sizes 1, AXIS=0 | fail on axes of one element, or launch over nothing |
| long AXIS | lose precision or overrun a block on long rows; fail on rows that begin with -Inf |
| between | depend on the number of rows |
| multiples of 32 | skip the mask where blocks divide the size |
| multiples of 16 | load whole vectors and skip the last, partial block |
| offset, unaligned, transposed, padded rows, every second element | ignore storage offsets or strides |
| quantization probe DTYPE | never quantize |
| large values | clamp, or overflow in an intermediate dtype |
| one tensor twice | write to an input before they have read the other |
| a small PARAMETER | use the default of a parameter such as `eps` |

Sizes and values differ from candidate to candidate. `axes` and `allows` in the `task.toml` decide which kinds a task has;
`docs/tasks.md` describes the inputs of each.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from suites.source.python_source import parse_literal
from suites.source.signature import parse_signature
from suites.task import Allowance, Case, Distribution, Task

from .judged_case import JudgedCase, Layout, RowKind
from .seeds import Draw
from .size_axes import VECTOR, Axes, Device, Work, sizes_on

Bounds = tuple[int, int]

BELOW_BLOCK: Bounds = (2, 17)
NARROW: Bounds = (2, 4)
FEW_ROWS: Bounds = (9, 17)
"""Rows of a small case that has plain rows beside special values and one degenerate row."""
SEVERAL_ROWS: Bounds = (10, 18)
"""Rows of a case with each kind of degenerate row and some plain rows."""
CROWD = 16
"""From this number of rows or elements a case has every kind of degenerate row beside plain rows."""
MANY_ROWS: Bounds = (100, 200)
WIDTHS: tuple[Bounds, ...] = ((18, 40), (41, 130), (131, 400), (401, 1200))
"""Classes of last sizes in small cases: a kernel that branches on the size meets each class in some evaluation."""
STEADY_WIDTHS = WIDTHS[2:]
"""Last sizes at which the variance of no row vanishes by chance."""
LONGEST = 1 << 13
ALIGNED, BLOCKED = 16, 32
"""Kernels load multiples of the first as whole vectors, and multiples of the second as whole blocks."""
MOST_BLOCKS = 24
DIVISORS = (1, 2, 4, 8)
"""If a case is too much work, its sizes are drawn again from bounds divided by the next number."""
SINGLE_KINDS = (RowKind.ZEROS, RowKind.OUTWEIGHED, RowKind.FAR_BELOW)
"""A case of few rows has one degenerate row, of one of these kinds."""
TINY = (1e-20, 1e-3)
"""A default between these is an `eps` or the like."""
LAYOUTS = {
    Allowance.OFFSET: (Layout.OFFSET,),
    Allowance.UNALIGNED: (Layout.UNALIGNED,),
    Allowance.NON_CONTIGUOUS: (Layout.TRANSPOSED, Layout.PADDED, Layout.STEPPED),
}


def open_cases(task: Task, draw: Draw, *, hidden: bool = True) -> tuple[JudgedCase, ...]:
    """Return the task's open cases, then hidden cases made from them unless `hidden` is false."""
    if not hidden or task.script is not None:
        return tuple(JudgedCase(case) for case in task.open_cases)
    return _with_hidden(task, task.open_cases, draw, exam=False)


def exam_cases(task: Task, draw: Draw) -> tuple[JudgedCase, ...]:
    """Return the task's exam cases (made from its open cases if it has none), then hidden cases made from them."""
    if task.script is not None:
        return tuple(
            JudgedCase(msgspec.structs.replace(case, name=f"exam: other values of {case.name}", exam=True))
            for case in task.open_cases
        )
    return _with_hidden(task, task.exam_cases or tuple(_derive_exam(task, draw)), draw, exam=True)


def _with_hidden(task: Task, bases: Sequence[Case], draw: Draw, *, exam: bool) -> tuple[JudgedCase, ...]:
    maker = _Maker(task, bases, draw, prefix="hidden", exam=exam)
    return (*(JudgedCase(case) for case in bases), *maker.make_cases())


def _derive_exam(task: Task, draw: Draw) -> Iterator[Case]:
    """Yield a ragged case of each dtype and distribution; if no axis varies, one open case with other values."""
    maker = _Maker(task, task.open_cases, draw, prefix="exam", exam=True)
    if not maker.axes.vary:
        base = maker.widest[draw.one_of(sorted(maker.widest), "exam")]
        yield msgspec.structs.replace(base, name=f"exam: other values of {base.name}", exam=True)
        return
    for dtype in maker.widest:
        for distribution in maker.distributions(dtype):
            case = maker.draw_ragged(dtype, f"{distribution} {dtype}")
            yield msgspec.structs.replace(case, distribution=distribution, exam=True)


class _Maker:
    """Makes the hidden cases of one evaluation from `bases`, the task's open cases or its exam cases."""

    def __init__(self, task: Task, bases: Sequence[Case], draw: Draw, *, prefix: str, exam: bool) -> None:
        self._task = task
        self._bases = bases
        self._signature = parse_signature(task.entry_points[0].signature)
        self._draw = draw
        self._prefix = prefix
        self._exam = exam
        self._own = {_identity(case) for case in (*task.cases, *bases)}
        self._work = Work(task)
        self.axes = Axes(task, bases, draw, prefix)
        self.widest = {
            dtype: max((case for case in bases if case.dtype == dtype), key=_elements)
            for dtype in dict.fromkeys(case.dtype for case in bases)
        }
        """The base with the most elements, by dtype."""

    def make_cases(self) -> Iterator[JudgedCase]:
        """Yield the cases of every kind that the task allows."""
        yield from self._rough_values()
        if self.axes.vary:
            yield from self._ragged()
            yield JudgedCase(self._draw_small("small, of parameters"), hidden=True, parameters=True)
            yield from self._edges()
            yield from self._long()
            yield from self._between()
            yield from self._multiples_of_32()
            yield from self._multiples_of_16()
        yield from self._layouts()
        yield from self._quantization_probes()
        floating = [dtype for dtype in self.widest if "float" in dtype]
        if Allowance.SPECIAL_VALUES in self._task.allows and floating:
            yield JudgedCase(self._draw_small("large values", floating), hidden=True, extreme=True)
        if len(self._signature.required) > 1 and not self._task.in_place:
            yield JudgedCase(self._draw_small("one tensor twice", width=WIDTHS), hidden=True, twice=True)
        yield from self._small_parameters()

    # The kinds, in the order of the table above.

    def _rough_values(self) -> Iterator[JudgedCase]:
        """The sizes of one base (in an exam of each), with all that the task allows values to be and other parameters.

        A parameter gets a part of its default, a tiny parameter a part of 1.
        """
        rough_cases = []
        for base in self._bases:
            kind = f"rough values, {base.name}"
            scalars = tuple(
                (name, self._draw_share(kind, name) * (1.0 if _is_tiny(default) else default))
                for name, default in self._fractional_defaults()
            )
            rough = self._roughen(self._rename(base, kind))
            changes = rough.special or rough.degenerate or rough.case.distribution is not base.distribution
            if scalars or changes:
                rough_cases.append(dataclasses.replace(rough, scalars=scalars))
        if self._exam or not rough_cases:
            yield from rough_cases
            return
        crowded = [rough for rough in rough_cases if _rows(rough.case) >= CROWD]
        yield self._draw.one_of(crowded or rough_cases, self._prefix, "rough values")

    def _ragged(self) -> Iterator[JudgedCase]:
        """Yield a case of each dtype with the same ragged sizes, which the task's cost model allows on `cpu`; nothing if none
        fit.

        All dtypes but one, which is drawn, have rough values. A case like one of the task's own is left out.
        """
        for sized_dtype in self.widest:
            ragged = self.draw_ragged(sized_dtype, "ragged")
            cases = [
                msgspec.structs.replace(
                    ragged,
                    name=f"{self._prefix}: ragged {dtype}",
                    dtype=dtype,
                    distribution=self._draw.one_of(self.distributions(dtype), self._prefix, "ragged", dtype),
                )
                for dtype in self.widest
            ]
            if all(map(self._work.fits, cases)):
                break
        else:
            return
        plain = self._draw.one_of(tuple(self.widest), self._prefix, "ragged")
        for case in filter(self._is_new, cases):
            yield JudgedCase(case, hidden=True) if case.dtype == plain else self._roughen(case)

    def _edges(self) -> Iterator[JudgedCase]:
        """One axis with one element or none, each axis in turn; in an exam also all axes with one element.

        The dtype is one in which the task has no such case.
        """
        for size in (1, 0):
            axes = [
                name
                for name, limits in self.axes.ranges.items()
                if limits.vary and limits.low <= size and size % limits.step == 0
            ]
            groups = {f"{axis}={size}": [axis] for axis in axes}
            if self._exam and size == 1 and len(axes) > 1:
                groups["all sizes 1"] = axes
            for kind, group in groups.items():
                edge = dict.fromkeys(group, size)
                ragged = [self.draw_ragged(dtype, kind) for dtype in self.widest]
                cases = [
                    msgspec.structs.replace(case, cpu=case.cpu | edge, gpu=case.gpu | edge) for case in ragged
                ]
                if new := list(filter(self._is_new, cases)):
                    yield self._roughen(self._draw.one_of(new, self._prefix, kind, "dtype"))

    def _long(self) -> Iterator[JudgedCase]:
        """The last axis as long as on a GPU, the others narrow; no case if the task's `cpu` cases are half as long."""
        *rest, axis = self.axes.ranges
        kind = f"long {axis}"
        base = self._draw_base(kind)
        most = min(LONGEST, max(case.gpu[axis] for case in self._task.cases))
        least = 2 * max(case.cpu[axis] for case in self._task.cases)

        def draw_sizes(divisor: int) -> dict[str, int] | None:
            high = most // divisor
            sizes = {name: self._draw_size(base, name, NARROW, kind) for name in rest}
            sizes[axis] = self._draw_size(base, axis, (high * 7 // 8, high), kind)
            return None if high <= least or sizes[axis] == base.cpu[axis] else sizes

        case = self._fit(base, kind, draw_sizes, self._roughest_distribution(base))
        if case is not None:
            masked = Allowance.SPECIAL_VALUES in self._task.allows and "float" in base.dtype
            yield JudgedCase(case, hidden=True, masked=masked)

    def _between(self) -> Iterator[JudgedCase]:
        """Yield a case with rough values: many narrow rows on `cpu`, and sizes between small ones and its own on a GPU.

        Nothing if no new sizes fit.
        """
        kind = "between"
        base = self._draw_base(kind)
        first, *rest = self.axes.ranges

        def draw_sizes(divisor: int) -> dict[str, int] | None:
            """Return sizes for this share of the work; `None` if they are those of the base."""
            if base.cpu == base.gpu:
                sizes = {axis: self._draw_halfway(size, axis, kind) for axis, size in base.cpu.items()}
            elif rest:
                low, high = MANY_ROWS
                sizes = {first: self._draw_size(base, first, (low // divisor, high // divisor), kind)}
                sizes |= {
                    axis: self._draw_size(base, axis, _shrink(BELOW_BLOCK, divisor), kind) for axis in rest
                }
            else:
                size = base.cpu[first] // divisor
                sizes = {first: self._draw_size(base, first, (2 * size, 3 * size), kind)}
            return None if sizes == base.cpu else sizes

        if case := self._fit(base, kind, draw_sizes, only_new=True):
            yield self._roughen(case)

    def _multiples_of_32(self) -> Iterator[JudgedCase]:
        """Rows in eights, the other axes multiples of 32; only if every axis may have any size."""
        kind = f"multiples of {BLOCKED}"
        base = self._draw_base(kind)
        first, *rest = self.axes.ranges
        if not rest or not self.axes.are_free:
            return

        def draw_sizes(divisor: int) -> dict[str, int]:
            """Return sizes for this share of the work: rows in eights, and axes that may be multiples of 32."""
            sizes = {first: CROWD + VECTOR * self._draw_number(2, kind, first)}
            for axis in rest:
                blocks = 2 + self._draw_number(MOST_BLOCKS // divisor, kind, axis)
                narrow = self._draw_size(base, axis, NARROW, kind)
                sizes[axis] = BLOCKED * blocks if axis in self._aligned_axes(divisor) else narrow
            return sizes

        if case := self._fit(base, kind, draw_sizes, base.distribution):
            yield self._roughen(case)

    def _multiples_of_16(self) -> Iterator[JudgedCase]:
        """Few rows, the other axes multiples of 16 and not of 32; every kind of degenerate row, no special values."""
        kind = f"multiples of {ALIGNED}"
        base = self._draw_base(kind)
        first, *rest = self.axes.ranges

        def draw_sizes(divisor: int) -> dict[str, int] | None:
            """Return sizes for this share of the work; `None` if none is a multiple of 16 and not of 32."""
            sizes = {first: self._draw_size(base, first, SEVERAL_ROWS, kind)} if rest else {}
            for axis in rest or [first]:
                if axis in self._aligned_axes(divisor):
                    size = base.cpu[axis] // divisor
                    low, high = size * 5 // 8, max(size * 5 // 4, 3 * ALIGNED)
                    sizes[axis] = self.axes.draw_multiple(
                        base.cpu[axis], axis, low, high, kind, of=ALIGNED, not_of=BLOCKED
                    )
                else:
                    sizes[axis] = self._draw_size(base, axis, NARROW, kind)
            aligned = any(size % ALIGNED == 0 and size % BLOCKED for size in sizes.values())
            return sizes if aligned else None

        if case := self._fit(base, kind, draw_sizes, only_new=True):
            rough = self._roughen(case)
            if rough.degenerate or self._is_new(rough.case):
                yield dataclasses.replace(
                    rough, special=False, degenerate=rough.degenerate and tuple(RowKind)
                )

    def _layouts(self) -> Iterator[JudgedCase]:
        """Small inputs with rough values in each layout; a plain offset also without gradients, as a server calls kernels."""
        for allowance, layouts in LAYOUTS.items():
            for layout in layouts if allowance in self._task.allows else ():
                is_offset = layout is Layout.OFFSET
                kind = f"{layout}, without gradients" if is_offset else str(layout)
                rough = self._roughen(self._draw_small(kind, sizes=FEW_ROWS, width=WIDTHS))
                yield dataclasses.replace(rough, layout=layout, no_gradients=is_offset)

    def _quantization_probes(self) -> Iterator[JudgedCase]:
        """Yield a case of each dtype with the inputs of the task's `probe_inputs`, if the task has limits for them."""
        if self._task.quantization is not None and self._task.quantization.probe is not None:
            for dtype, base in self.widest.items():
                case = self._rename(base, f"quantization probe {dtype}")
                standard = msgspec.structs.replace(case, distribution=Distribution.STANDARD)
                yield JudgedCase(standard, hidden=True, probe=True)

    def _small_parameters(self) -> Iterator[JudgedCase]:
        """Yield a case for each parameter with a tiny default, such as `eps`, with a value that is smaller still."""
        for name, default in self._fractional_defaults():
            if _is_tiny(default):
                value = default * self._draw_share("small", name) / 1024
                case = self._draw_small(f"a small {name}", width=STEADY_WIDTHS)
                yield JudgedCase(case, hidden=True, scalars=((name, value),))

    # Values.

    def _roughen(self, case: Case) -> JudgedCase:
        """The case with outliers, special values and degenerate rows, if the task allows them and there are enough rows."""
        rows, is_floating = _rows(case), "float" in case.dtype
        elements = min(math.prod(sizes.values()) for sizes in (case.cpu, case.gpu))
        special = is_floating and Allowance.SPECIAL_VALUES in self._task.allows
        kinds: tuple[RowKind, ...] = ()
        if is_floating and Allowance.DEGENERATE_ROWS in self._task.allows and elements >= CROWD:
            # A measured task has a row that shows a dropped `eps` in every such case.
            least = (RowKind.TINY,) * self._task.is_measured
            if rows == 1:
                kinds = least or (RowKind.OUTWEIGHED,)
            elif rows < CROWD:
                kinds = (*least, self._draw.one_of(SINGLE_KINDS, self._prefix, case.name, "kind"))
            else:
                kinds = tuple(RowKind)
        if rows < FEW_ROWS[0]:  # a special value hides the rest of its row
            special = special and not kinds
        rough = msgspec.structs.replace(case, distribution=self._roughest_distribution(case))
        return JudgedCase(rough, hidden=True, special=special, degenerate=kinds)

    def _roughest_distribution(self, case: Case) -> Distribution:
        outlier = Distribution.OUTLIER
        return outlier if outlier in self.distributions(case.dtype) else case.distribution

    def distributions(self, dtype: str) -> tuple[Distribution, ...]:
        """Return the distributions of all the task's cases of this dtype, exam cases included."""
        shown = {case.distribution for case in self._task.cases if case.dtype == dtype}
        return tuple(distribution for distribution in Distribution if distribution in shown)

    def _fractional_defaults(self) -> Iterator[tuple[str, float]]:
        """Parameters of the entry point whose default is a positive float, with that default."""
        for name, text in self._signature.defaults.items():
            default = parse_literal(text)
            if isinstance(default, float) and 0 < default < math.inf:
                yield name, default

    def _draw_share(self, kind: str, name: str) -> float:
        """From 0.25 to 0.5, so that a parameter which is a share stays one."""
        return (256 + self._draw_number(256, kind, name)) / 1024

    # Sizes.

    def draw_ragged(self, dtype: str, kind: str) -> Case:
        """Draw a case about as large as the dtype's largest: no size is a multiple of a vector, or one of the task's own."""
        base = self.widest[dtype]

        def draw(*, grow: bool) -> Case:
            """Return a case with sizes close to the base's: larger if they may `grow`."""
            return Case(
                name=f"{self._prefix}: {kind}",
                dtype=dtype,
                cpu={axis: self._draw_near(base, "cpu", axis, kind, grow=grow) for axis in base.cpu},
                gpu={axis: self._draw_near(base, "gpu", axis, kind, grow=grow) for axis in base.cpu},
                distribution=self._draw.one_of(self.distributions(dtype), self._prefix, kind),
                exam=base.exam,
            )

        case = draw(grow=True)
        return case if self._work.fits(case) else draw(grow=False)

    def _draw_near(self, base: Case, device: Device, axis: str, kind: str, *, grow: bool) -> int:
        """Draw a size close to the base's, no multiple of a vector.

        With `grow` it is larger on `cpu`, if the axis allows: that finds kernels made for the open sizes. Else it is smaller,
        so that memory suffices.
        """
        size = sizes_on(base, device)[axis]
        low, high = size + 1, size * 5 // 4
        if device == "gpu" or not grow or self.axes.ranges[axis].high is not None:
            most = max(sizes_on(case, device)[axis] for case in self._task.cases)
            low, high = size * 5 // 8, min(high if grow else size, most)
        if size <= BELOW_BLOCK[0]:
            low, high = BELOW_BLOCK[0], BELOW_BLOCK[1] if device == "cpu" and grow else BELOW_BLOCK[0] + 1
        return self.axes.draw_ragged(size, axis, low, high, f"{kind} {device}", device)

    def _draw_small(
        self,
        kind: str,
        dtypes: Sequence[str] = (),
        *,
        sizes: Bounds = BELOW_BLOCK,
        width: Sequence[Bounds] = (),
    ) -> Case:
        """A small case, the same on every device; the last size is within one of the bounds in `width`, if there are any."""
        base = self.widest[self._draw.one_of(tuple(dtypes or self.widest), self._prefix, kind)]

        def draw_sizes(divisor: int) -> dict[str, int]:
            """Return small sizes for this share of the work, the last one within the drawn bounds."""
            bounds = dict.fromkeys(base.cpu, sizes)
            if width:
                bounds[list(base.cpu)[-1]] = self._draw.one_of(width, self._prefix, kind, "last")
            return {
                axis: self._draw_size(base, axis, _shrink(limits, divisor), kind)
                for axis, limits in bounds.items()
            }

        smallest = draw_sizes(DIVISORS[-1])
        return self._fit(base, kind, draw_sizes) or self._with_sizes(
            base, kind, smallest, Distribution.STANDARD
        )

    def _draw_halfway(self, largest: int, axis: str, kind: str) -> int:
        """Draw a size between small ones and the largest, each power of two equally likely; `largest` itself if it is small."""
        doublings = (largest // BELOW_BLOCK[1]).bit_length()
        if not doublings:
            return largest
        low = BELOW_BLOCK[1] << self._draw_number(doublings, kind, axis, "doublings")
        return self.axes.draw_ragged(largest, axis, low, min(2 * low, largest), kind)

    def _draw_size(self, base: Case, axis: str, bounds: Bounds, kind: str) -> int:
        return self.axes.draw_ragged(base.cpu[axis], axis, *bounds, kind)

    def _aligned_axes(self, divisor: int) -> tuple[str, ...]:
        """All axes but the first; in the smallest case the last one alone."""
        axes = tuple(self.axes.ranges)
        return axes[-1:] if divisor == DIVISORS[-1] else axes[1:] or axes

    def _fit(
        self,
        base: Case,
        kind: str,
        draw_sizes: Callable[[int], dict[str, int] | None],
        distribution: Distribution = Distribution.STANDARD,
        *,
        only_new: bool = False,
    ) -> Case | None:
        """The first case of `draw_sizes(divisor)`, the same on every device, whose work fits; `None` if there is none."""
        for sizes in filter(None, map(draw_sizes, DIVISORS)):
            case = self._with_sizes(base, kind, sizes, distribution)
            if self._work.fits(case) and (not only_new or self._is_new(case)):
                return case
        return None

    def _with_sizes(self, base: Case, kind: str, sizes: dict[str, int], distribution: Distribution) -> Case:
        return msgspec.structs.replace(
            self._rename(base, kind), cpu=sizes, gpu=sizes, distribution=distribution
        )

    def _rename(self, base: Case, kind: str) -> Case:
        return msgspec.structs.replace(base, name=f"{self._prefix}: {kind}")

    def _is_new(self, case: Case) -> bool:
        return _identity(case) not in self._own

    def _draw_base(self, kind: str) -> Case:
        return self.widest[self._draw.one_of(tuple(self.widest), self._prefix, kind)]

    def _draw_number(self, below: int, *purpose: str) -> int:
        return self._draw.number(below, self._prefix, *purpose)


def _is_tiny(default: float) -> bool:
    return TINY[0] <= default <= TINY[1]


def _shrink(bounds: Bounds, divisor: int) -> Bounds:
    low, high = bounds
    return low, max(low, high // divisor)


def _rows(case: Case) -> int:
    """The first size, on the device where it is smaller: inputs most often have their rows there."""
    return min(next(iter(sizes.values())) for sizes in (case.cpu, case.gpu))


def _elements(case: Case) -> int:
    return math.prod(case.cpu.values())


def _identity(case: Case) -> tuple[object, ...]:
    return (case.dtype, tuple(sorted(case.cpu.items())), case.distribution)
