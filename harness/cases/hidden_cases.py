"""
Which cases are judged: a task's own, hidden cases made from them, and exam cases for tasks that mark none. Torch-free.

A hidden case is known by its kind. Its sizes and values differ from candidate to candidate, and none is a case of the task.
`axes` and `allows` in the `task.toml` decide which kinds there are; `docs/tasks.md` lists them.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Iterator, Sequence

import msgspec

from suites.signature import parse_signature
from suites.task import Allowance, Case, Distribution, Task

from .judged_case import JudgedCase, Layout, RowKind
from .seeds import Draw
from .size_axes import VECTOR, Axes, Device, Work, first_fitting, sizes_on

Bounds = tuple[int, int]

SMALL: Bounds = (2, 17)
"""Sizes below any block."""
NARROW: Bounds = (2, 4)
FEW: Bounds = (9, 17)
"""First sizes that leave plain rows beside special values and a degenerate row."""
MANY: Bounds = (100, 200)
"""First size on `cpu` of the case with many narrow rows."""
WIDE: tuple[Bounds, ...] = ((18, 40), (41, 130), (131, 400), (401, 1200))
"""Last sizes of cases that are small otherwise: code that looks at sizes gets each class by some draw."""
STEADY = WIDE[2:]
"""Last sizes for a tiny parameter: so long that no variance vanishes by chance."""
LONG = 1 << 13
ALIGNED, BLOCKED = 16, 32
"""Kernels take multiples of the first for whole vectors, and multiples of the second for whole blocks."""
BLOCKS = 24
"""A size that blocks divide has up to so many of `BLOCKED`, and two more."""
SEVERAL: Bounds = (10, 18)
"""First size of the case with multiples of `ALIGNED`: each kind of degenerate row has a row, and some rows stay plain."""
CROWD = 16
"""First size from which on a case has every kind of degenerate row beside plain rows."""
PARTS = (1, 2, 4, 8)
"""A case that asks for too much work is drawn again with sizes up to a half, a quarter and an eighth."""
SINGLE = (RowKind.ZEROS, RowKind.OUTWEIGHED, RowKind.FAR_BELOW)
"""A case of few rows has a row of one of these kinds; a row that stands alone has one value that outweighs the others."""
SHARES = (256, 1024)
"""A parameter's other value is 256 to 511 of 1024 parts of its default, so that shares stay shares."""
TINY = (1e-20, 1e-3)
"""A default between these is an `eps` or the like: a part of one and a value far below the default show a clamp."""
SMALLER = 1024
LAYOUTS = {
    Allowance.OFFSET: (Layout.OFFSET,),
    Allowance.UNALIGNED: (Layout.UNALIGNED,),
    Allowance.NON_CONTIGUOUS: (Layout.TRANSPOSED, Layout.PADDED, Layout.STEPPED),
}


def open_cases(task: Task, draw: Draw) -> tuple[JudgedCase, ...]:
    """The task's open cases, then hidden cases made from them."""
    return _with_hidden(task, task.open_cases, draw, exam=False)


def exam_cases(task: Task, draw: Draw) -> tuple[JudgedCase, ...]:
    """The exam's cases, or for a task without such cases some made from its open cases; then hidden cases."""
    return _with_hidden(task, task.exam_cases or tuple(_derived_exam(task, draw)), draw, exam=True)


def _with_hidden(task: Task, bases: Sequence[Case], draw: Draw, *, exam: bool) -> tuple[JudgedCase, ...]:
    maker = _Maker(task, bases, draw, prefix="hidden", exam=exam)
    return (*(JudgedCase(case) for case in bases), *maker.cases())


def _derived_exam(task: Task, draw: Draw) -> Iterator[Case]:
    """A ragged case of each dtype and distribution; where no axis varies, other values of an open case."""
    maker = _Maker(task, task.open_cases, draw, prefix="exam", exam=True)
    if not maker.axes.vary:
        base = maker.widest[draw.one_of(sorted(maker.widest), "exam")]
        yield msgspec.structs.replace(base, name=f"exam: other values of {base.name}", exam=True)
        return
    for dtype in maker.widest:
        for distribution in maker.distributions(dtype):
            case = maker.ragged(dtype, f"{distribution} {dtype}")
            yield msgspec.structs.replace(case, distribution=distribution, exam=True)


class _Maker:
    """Makes hidden cases from `bases`, one kind after the other."""

    def __init__(self, task: Task, bases: Sequence[Case], draw: Draw, *, prefix: str, exam: bool) -> None:
        self._task = task
        self._bases = bases
        self._signature = parse_signature(task.entry_points[0].signature)
        self._draw = draw
        self._prefix = prefix
        self._exam = exam
        self._known = {_distinct(case) for case in (*task.cases, *bases)}
        self._work = Work(task)
        self.axes = Axes(task, bases, draw, prefix)
        self.widest: dict[str, Case] = {}
        for case in bases:
            known = self.widest.setdefault(case.dtype, case)
            if math.prod(case.cpu.values()) > math.prod(known.cpu.values()):
                self.widest[case.dtype] = case

    def distributions(self, dtype: str) -> tuple[Distribution, ...]:
        """The distributions that the task's own cases of the dtype have, the exam's among them."""
        cases = [case for case in self._task.cases if case.dtype == dtype]
        return tuple(kind for kind in Distribution if any(case.distribution is kind for case in cases))

    def cases(self) -> Iterator[JudgedCase]:
        """Every kind that the task allows."""
        yield from self._rough_values()
        if self.axes.vary:
            yield from self._ragged()
            yield from self._plain("small, of parameters", parameters=True)
            yield from self._edges()
            yield from self._long()
            yield from self._many_rows()
            yield from self._blocked()
            yield from self._aligned()
        yield from self._layouts()
        yield from self._probes()
        floating = tuple(dtype for dtype in self.widest if "float" in dtype)
        if Allowance.SPECIAL_VALUES in self._task.allows and floating:
            yield from self._plain("large values", dtypes=floating, extreme=True)
        if len(self._signature.required) > 1 and not self._task.in_place:
            yield from self._plain("one tensor twice", last=WIDE, twice=True)
        for name, default in self._defaults():
            if TINY[0] <= default <= TINY[1]:
                value = default * self._share("small", name) / SMALLER
                yield from self._plain(f"a small {name}", last=STEADY, scalars=((name, value),))

    def ragged(self, dtype: str, kind: str) -> Case:
        """About as large as the largest case of the dtype, no size a multiple of a vector or known from the task."""
        base = self.widest[dtype]

        def make(part: int) -> Case:
            sizes = {
                device: {axis: self._near(base, device, axis, kind, grow=part == 1) for axis in base.cpu}
                for device in ("cpu", "gpu")
            }
            distribution = self._draw.one_of(self.distributions(dtype), self._prefix, kind)
            return self._case(base, kind, cpu=sizes["cpu"], gpu=sizes["gpu"], distribution=distribution)

        return first_fitting(self._work, make, PARTS[:2]) or make(2)

    def _ragged(self) -> Iterator[JudgedCase]:
        """The same ragged sizes in each dtype: what is kept by shape has to be right in all. Rough values in all dtypes but one."""
        first = self._draw.one_of(tuple(self.widest), self._prefix, "ragged")
        made = (self._in_each_dtype(self.ragged(dtype, "ragged")) for dtype in self.widest)
        cases = next((cases for cases in made if all(map(self._work.fits, cases))), ())
        for case in cases:
            if _distinct(case) not in self._known:
                yield JudgedCase(case, hidden=True) if case.dtype == first else self._roughened(case)

    def _in_each_dtype(self, case: Case) -> tuple[Case, ...]:
        """The sizes of a ragged case in each dtype."""
        return tuple(
            msgspec.structs.replace(
                case,
                name=f"{self._prefix}: ragged {dtype}",
                dtype=dtype,
                distribution=self._draw.one_of(self.distributions(dtype), self._prefix, "ragged", dtype),
            )
            for dtype in self.widest
        )

    def _rough_values(self) -> Iterator[JudgedCase]:
        """
        The sizes of a case of the task with all that values may be, and another value of each parameter.

        Code that knows these sizes can count neither on mild values there nor on defaults. A tiny default becomes a large value,
        any other a part of itself. The exam has such a case for each of its cases.
        """
        made = []
        for base in self._bases:
            kind = f"rough values, {base.name}"
            scalars = tuple(
                (name, self._share(kind, name) * (1.0 if TINY[0] <= default <= TINY[1] else default))
                for name, default in self._defaults()
            )
            case = self._case(base, kind, cpu=base.cpu, gpu=base.gpu, distribution=base.distribution)
            rough = dataclasses.replace(self._roughened(case), scalars=scalars)
            if (
                scalars
                or rough.special
                or rough.degenerate
                or rough.case.distribution is not base.distribution
            ):
                made.append(rough)
        if self._exam or not made:
            yield from made
            return
        crowded = [case for case in made if _first(case.case) >= CROWD]
        yield self._draw.one_of(crowded or made, self._prefix, "rough values")

    def _roughened(self, case: Case) -> JudgedCase:
        """The case with outliers, special values and degenerate rows, as far as the task allows them and rows leave room."""
        rows, floating = _first(case), "float" in case.dtype
        elements = min(math.prod(sizes.values()) for sizes in (case.cpu, case.gpu))
        special = floating and Allowance.SPECIAL_VALUES in self._task.allows
        kinds: tuple[RowKind, ...] = ()
        if floating and Allowance.DEGENERATE_ROWS in self._task.allows and elements >= CROWD:
            kinds = tuple(RowKind)
        if rows < CROWD:
            kinds = kinds and (self._draw.one_of(SINGLE, self._prefix, case.name, "kind"),)
        if rows == 1 and kinds:
            kinds = (RowKind.OUTWEIGHED,)
        if rows < FEW[0]:  # a special value hides the rest of its row
            special = special and not kinds
        made = msgspec.structs.replace(case, distribution=self._roughest(case))
        return JudgedCase(made, hidden=True, special=special, degenerate=kinds)

    def _edges(self) -> Iterator[JudgedCase]:
        """One axis at its smallest, each in turn; the exam has all axes at one element, too."""
        for edge in (1, 0):
            axes = [
                name
                for name, axis in self.axes.ranges.items()
                if axis.vary and axis.low <= edge and edge % axis.step == 0
            ]
            for name in axes:
                yield from self._edge(f"{name}={edge}", [name], edge)
            if self._exam and edge == 1 and len(axes) > 1:
                yield from self._edge("all sizes 1", axes, edge)

    def _edge(self, kind: str, axes: Sequence[str], size: int) -> Iterator[JudgedCase]:
        """The axes at one size, in a dtype in which the task has no such case; none where it has all."""
        edge = dict.fromkeys(axes, size)
        made = []
        for dtype in self.widest:
            case = self.ragged(dtype, kind)
            case = msgspec.structs.replace(case, cpu=case.cpu | edge, gpu=case.gpu | edge)
            if _distinct(case) not in self._known:
                made.append(case)
        if made:
            yield self._roughened(self._draw.one_of(made, self._prefix, kind, "dtype"))

    def _long(self) -> Iterator[JudgedCase]:
        """The last axis as long as on a GPU, up to `LONG`, the others narrow; none where open cases are about as long."""
        *others, axis = self.axes.ranges
        kind = f"long {axis}"
        base = self._drawn_base(kind)
        most = min(LONG, max(case.gpu[axis] for case in self._task.cases))
        least = 2 * max(case.cpu[axis] for case in self._task.cases)

        def make(part: int) -> Case | None:
            high = most // part
            sizes = {other: self._within(base, other, NARROW, kind) for other in others}
            sizes[axis] = self._within(base, axis, (high * 7 // 8, high), kind)
            if high <= least or sizes[axis] == base.cpu[axis]:
                return None
            return self._case(base, kind, cpu=sizes, gpu=sizes, distribution=self._roughest(base))

        case = first_fitting(self._work, make, PARTS)
        if case is not None:
            masked = Allowance.SPECIAL_VALUES in self._task.allows and "float" in base.dtype
            yield JudgedCase(case, hidden=True, masked=masked)

    def _many_rows(self) -> Iterator[JudgedCase]:
        """On `cpu` many rows that are narrow; on a GPU sizes anywhere between small ones and its own."""
        kind = "between"
        base = self._drawn_base(kind)
        first, *others = self.axes.ranges

        def make(part: int) -> Case | None:
            if base.cpu == base.gpu:
                sizes = {axis: self._halfway(base.cpu[axis], axis, kind) for axis in base.cpu}
            elif others:
                low, high = MANY
                sizes = {first: self._within(base, first, (low // part, high // part), kind)}
                sizes |= {axis: self._within(base, axis, _shrunk(SMALL, part), kind) for axis in others}
            else:
                size = base.cpu[first] // part
                sizes = {first: self._within(base, first, (2 * size, 3 * size), kind)}
            case = self._case(base, kind, cpu=sizes, gpu=sizes, distribution=Distribution.STANDARD)
            return None if sizes == base.cpu or _distinct(case) in self._known else case

        yield from map(self._roughened, _any(first_fitting(self._work, make, PARTS)))

    def _halfway(self, largest: int, axis: str, kind: str) -> int:
        """A size between small ones and the largest, each power of two as likely as the others."""
        doublings = (largest // SMALL[1]).bit_length()
        if not doublings:
            return largest
        low = SMALL[1] << self._number(doublings, kind, axis, "doublings")
        return self.axes.within(largest, axis, low, min(2 * low, largest), kind)

    def _aligned(self) -> Iterator[JudgedCase]:
        """Few rows, and along the other axes multiples of 16 and not of 32; every kind of degenerate row, no special values."""
        kind = f"multiples of {ALIGNED}"
        base = self._drawn_base(kind)
        first, *others = self.axes.ranges

        def vectors(axis: str, part: int) -> int:
            kept = base.cpu[axis] // part
            low, high = kept * 5 // 8, max(kept * 5 // 4, 3 * ALIGNED)
            return self.axes.multiple(base.cpu[axis], axis, low, high, kind, of=ALIGNED, not_of=BLOCKED)

        def make(part: int) -> Case | None:
            aligned = self._aligned_axes(part)
            sizes = {
                axis: vectors(axis, part) if axis in aligned else self._within(base, axis, NARROW, kind)
                for axis in others or (first,)
            }
            if others:
                sizes = {first: self._within(base, first, SEVERAL, kind)} | sizes
            case = self._case(base, kind, cpu=sizes, gpu=sizes, distribution=Distribution.STANDARD)
            is_aligned = any(size % ALIGNED == 0 and size % BLOCKED for size in sizes.values())
            return case if is_aligned and _distinct(case) not in self._known else None

        for case in _any(first_fitting(self._work, make, PARTS)):
            made = self._roughened(case)
            yield dataclasses.replace(made, special=False, degenerate=made.degenerate and tuple(RowKind))

    def _blocked(self) -> Iterator[JudgedCase]:
        """Rows in eights, and along the other axes multiples of 32, which blocks divide. None where an axis is not free."""
        kind = f"multiples of {BLOCKED}"
        base = self._drawn_base(kind)
        first, *others = self.axes.ranges
        if not others or not self.axes.are_free:
            return

        def make(part: int) -> Case:
            aligned = self._aligned_axes(part)
            sizes = {first: CROWD + VECTOR * self._number(2, kind, first)}
            for axis in others:
                blocks = 2 + self._number(BLOCKS // part, kind, axis)
                sizes[axis] = BLOCKED * blocks if axis in aligned else self._within(base, axis, NARROW, kind)
            return self._case(base, kind, cpu=sizes, gpu=sizes, distribution=base.distribution)

        yield from map(self._roughened, _any(first_fitting(self._work, make, PARTS)))

    def _aligned_axes(self, part: int) -> tuple[str, ...]:
        """All axes but the first; the last alone in the smallest case."""
        axes = tuple(self.axes.ranges)
        return axes[-1:] if part == PARTS[-1] else axes[1:] or axes

    def _layouts(self) -> Iterator[JudgedCase]:
        """Small inputs with rough values in each layout; those that begin inside a storage where torch keeps no gradients."""
        for allowance, layouts in LAYOUTS.items():
            for layout in layouts if allowance in self._task.allows else ():
                served = layout is Layout.OFFSET
                kind = f"{layout}, without gradients" if served else str(layout)
                for plain in self._plain(kind, sizes=FEW, last=WIDE):
                    rough = self._roughened(plain.case)
                    yield dataclasses.replace(rough, layout=layout, no_gradients=served)

    def _probes(self) -> Iterator[JudgedCase]:
        """The inputs of a quantization's probe in each dtype."""
        if self._task.quantization is not None and self._task.quantization.probe is not None:
            for dtype, base in self.widest.items():
                kind, standard = f"quantization probe {dtype}", Distribution.STANDARD
                case = self._case(base, kind, cpu=base.cpu, gpu=base.gpu, distribution=standard)
                yield JudgedCase(case, hidden=True, probe=True)

    def _plain(
        self,
        kind: str,
        dtypes: Sequence[str] = (),
        *,
        sizes: Bounds = SMALL,
        last: Sequence[Bounds] = (),
        **properties: object,
    ) -> Iterator[JudgedCase]:
        """A small case, its last size within one of `last` where there are such; the same on every device."""
        dtype = self._draw.one_of(tuple(dtypes or self.widest), self._prefix, kind)
        base = self.widest[dtype]

        def make(part: int) -> Case:
            made = {axis: self._within(base, axis, _shrunk(sizes, part), kind) for axis in base.cpu}
            if last:
                *_, final = base.cpu
                bounds = self._draw.one_of(last, self._prefix, kind, "last")
                made[final] = self._within(base, final, _shrunk(bounds, part), kind)
            return self._case(base, kind, cpu=made, gpu=made, distribution=Distribution.STANDARD)

        case = first_fitting(self._work, make, PARTS) or make(PARTS[-1])
        yield JudgedCase(case, hidden=True, **properties)  # type: ignore[arg-type]

    def _near(self, base: Case, device: Device, axis: str, kind: str, *, grow: bool) -> int:
        """A size close to the base's: larger on `cpu` with `grow`, where a kernel made for the open sizes shows; else within them."""
        size = sizes_on(base, device)[axis]
        low, high = size + 1, size * 5 // 4
        if device == "gpu" or not grow or self.axes.ranges[axis].high is not None:
            most = max(sizes_on(case, device)[axis] for case in self._task.cases)
            low, high = size * 5 // 8, min(high if grow else size, most)
        if size < SMALL[0] + 1:
            low, high = SMALL[0], SMALL[1] if device == "cpu" and grow else SMALL[0] + 1
        return self.axes.within(size, axis, low, high, f"{kind} {device}", device)

    def _within(self, base: Case, axis: str, bounds: Bounds, kind: str) -> int:
        return self.axes.within(base.cpu[axis], axis, *bounds, kind)

    def _drawn_base(self, kind: str) -> Case:
        return self.widest[self._draw.one_of(tuple(self.widest), self._prefix, kind)]

    def _roughest(self, case: Case) -> Distribution:
        """Outliers, where the task has them in the case's dtype."""
        outlier = Distribution.OUTLIER
        return outlier if outlier in self.distributions(case.dtype) else case.distribution

    def _defaults(self) -> Iterator[tuple[str, float]]:
        """Parameters of the entry point whose default is a positive number with a fraction, and that default."""
        for name, text in self._signature.defaults.items():
            default = ast.literal_eval(text)
            if isinstance(default, float) and 0 < default < math.inf:
                yield name, default

    def _share(self, kind: str, name: str) -> float:
        """The part of its default that a parameter gets, from 0.25 to 0.5."""
        least, whole = SHARES
        return (least + self._number(least, kind, name)) / whole

    def _number(self, below: int, *purpose: str) -> int:
        return self._draw.number(below, self._prefix, *purpose)

    def _case(
        self, base: Case, kind: str, *, cpu: dict[str, int], gpu: dict[str, int], distribution: Distribution
    ) -> Case:
        return Case(
            name=f"{self._prefix}: {kind}",
            dtype=base.dtype,
            cpu=cpu,
            gpu=gpu,
            distribution=distribution,
            exam=base.exam,
        )


def _shrunk(bounds: Bounds, part: int) -> Bounds:
    low, high = bounds
    return low, max(low, high // part)


def _any(case: Case | None) -> tuple[Case, ...]:
    return () if case is None else (case,)


def _first(case: Case) -> int:
    """The first size, where inputs most often have their rows."""
    return min(next(iter(sizes.values())) for sizes in (case.cpu, case.gpu))


def _distinct(case: Case) -> tuple[object, ...]:
    return (case.dtype, tuple(sorted(case.cpu.items())), case.distribution)
