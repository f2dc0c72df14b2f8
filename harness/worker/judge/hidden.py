"""Which cases are judged: a task's own, hidden ones made from them, and exam cases for tasks that mark none.

Torch-free. Hidden cases are known by what they are, never by their sizes and values, which vary with the draw; none is
a case of the task. What a task allows decides which there are: `axes` and `allows` in its `task.toml`.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from suites.signature import parse_signature
from suites.task import Allowance, Case, Distribution, Task

from .cases import KINDS, NEGATIVE, OUTWEIGHED, ZEROS, JudgedCase, Layout
from .seeds import Draw

SMALL = (2, 17)
"""Sizes of the case that is smaller than any block."""
LONG = 1 << 13
"""Largest size of the case that is as long along its last axis as those of a GPU are."""
LONG_VOLUME = 1 << 17
"""Product of its sizes at most."""
NARROW = (2, 4)
"""Its other sizes."""
VECTOR = 8
"""A ragged size is no multiple of it."""
MARKED = (5, 17)
"""Sizes of the case with NaN and Inf: each has a row of its own, and so has -Inf throughout."""
SEVERAL = (10, 18)
"""First size of the case whose others are multiples of `ALIGNED`: each kind of degenerate row has one, and some are left as they are."""
ALIGNED, BLOCKED = 16, 32
"""Sizes of that case are multiples of the first, which kernels take for whole vectors, and none of the second, as a block's are."""
WIDE = ((18, 40), (41, 130), (131, 400), (401, 1200))
"""Last sizes of cases that are small otherwise, from one of these to another: code that looks at sizes meets each kind at some."""
BLOCKS = 24
"""Of one of the sizes that blocks divide at most, and one more."""
STEADY = WIDE[2:]
"""Those of cases with another tiny parameter: so long that no variance vanishes by chance."""
CROWD = 16
"""First size of a case that has special values and degenerate rows beside others; where there are fewer, they would leave none."""
EVERY_KIND = tuple(range(KINDS))
TELLING = (ZEROS, OUTWEIGHED, NEGATIVE)
"""Of few rows one has one of these."""
BETWEEN = (100, 200)
"""First size on `cpu` of the case whose sizes on a GPU lie anywhere between small ones and its own."""
TRIES = 64
PARTS = (0.25, 256, 1024)
"""A parameter's other value is a part of its default, so that shares stay shares: from this on, in so many steps of one in so many."""
TINY = (1e-20, 1e-3)
"""A default between these is nobody's share, but an `eps` or the like. It is also given as that part of one and, as that of its own, divided
by `SMALLER`: a clamp anywhere between shows."""
SMALLER = 1024
LAYOUTS = {
    Allowance.OFFSET: (Layout.OFFSET,),
    Allowance.UNALIGNED: (Layout.UNALIGNED,),
    Allowance.NON_CONTIGUOUS: (Layout.TRANSPOSED, Layout.PADDED, Layout.STEPPED),
}


@dataclass(frozen=True, slots=True)
class _Range:
    """Sizes that an axis may have."""

    low: int
    high: int | None
    """`None`: cost alone bounds it."""
    step: int
    vary: bool


def open_cases(task: Task, draw: Draw) -> tuple[JudgedCase, ...]:
    """The task's open cases, then the hidden ones made from them."""
    return _with_hidden(task, task.open_cases, draw)


def exam_cases(task: Task, draw: Draw) -> tuple[JudgedCase, ...]:
    """The cases kept for the exam, or for a task without any those made from its open cases; then hidden ones."""
    return _with_hidden(task, task.exam_cases or tuple(_derived_exam(task, draw)), draw)


def _with_hidden(task: Task, bases: Sequence[Case], draw: Draw) -> tuple[JudgedCase, ...]:
    return (*(JudgedCase(case) for case in bases), *_Making(task, bases, draw, prefix="hidden").cases())


def _derived_exam(task: Task, draw: Draw) -> Iterator[Case]:
    """Ragged ones of each dtype and, where the task knows outliers, with those; else values of another seed."""
    making = _Making(task, task.open_cases, draw, prefix="exam")
    if not making.varies:
        base = making.widest[draw.one_of(sorted(making.widest), "exam")]
        yield msgspec.structs.replace(base, name=f"exam: other values of {base.name}", exam=True)
        return
    for dtype in making.widest:
        for distribution in making.distributions(dtype):
            case = making.ragged(dtype, f"{distribution} {dtype}")
            yield msgspec.structs.replace(case, distribution=distribution, exam=True)


class _Making:
    """Makes cases from `bases`, one kind after the other."""

    def __init__(self, task: Task, bases: Sequence[Case], draw: Draw, *, prefix: str) -> None:
        self._task = task
        self._bases = bases
        self._signature = parse_signature(task.entry_points[0].signature)
        self._draw = draw
        self._prefix = prefix
        self._ranges = _ranges(task)
        self._known = {_distinct(case) for case in (*task.cases, *bases)}
        self._shown = {
            (device, axis, _sizes(case, device)[axis])
            for case in (*task.cases, *bases)
            for axis in case.cpu
            for device in ("cpu", "gpu")
        }
        self.widest: dict[str, Case] = {}
        """The largest case of each dtype."""
        for case in bases:
            known = self.widest.setdefault(case.dtype, case)
            if math.prod(case.cpu.values()) > math.prod(known.cpu.values()):
                self.widest[case.dtype] = case

    @property
    def varies(self) -> bool:
        """Whether any axis may have other sizes."""
        return any(one.vary for one in self._ranges.values())

    def distributions(self, dtype: str) -> tuple[Distribution, ...]:
        """Those that the task's own cases of the dtype have, the exam's among them."""
        return tuple(
            kind
            for kind in Distribution
            if any(case.dtype == dtype and case.distribution is kind for case in self._task.cases)
        )

    def cases(self) -> Iterator[JudgedCase]:
        """Everything that the task allows, cheap kinds once, ragged ones for each dtype."""
        small = self._small("small, of parameters")
        if self.varies:
            ragged = [self.ragged(dtype, f"ragged {dtype}") for dtype in self.widest]
            for case in ragged:
                if _distinct(case) not in self._known:
                    yield JudgedCase(case, hidden=True)
        yield from self._rough()
        if self.varies:
            yield JudgedCase(small, hidden=True, parameters=True)
            yield from self._edges()
            yield from self._long()
            yield from self._between()
            yield from self._blocked()
        aligned = list(self._aligned()) if self.varies else []
        yield from aligned
        known = next((one.case for one in aligned), None)
        for allowance, layouts in LAYOUTS.items():
            if allowance in self._task.allows:
                for layout in layouts:
                    served = layout is Layout.OFFSET
                    kind = f"{layout}, without gradients" if served else str(layout)
                    made = self._roughened(self._small(kind, last=WIDE))
                    yield dataclasses.replace(made, layout=layout, no_gradients=served)
        if self._task.quantization is not None and self._task.quantization.probe is not None:
            for dtype, base in self.widest.items():
                kind, plain = f"quantization probe {dtype}", Distribution.STANDARD
                case = self._case(base, kind, cpu=base.cpu, gpu=base.gpu, distribution=plain)
                yield JudgedCase(case, hidden=True, probe=True)
        floating = [dtype for dtype in self.widest if "float" in dtype]
        if Allowance.SPECIAL_VALUES in self._task.allows and floating:
            case = self._small("NaN and Inf", dtypes=floating, sizes=MARKED, last=WIDE)
            yield JudgedCase(case, hidden=True, special=True)
            case = self._small("large values", dtypes=floating)
            yield JudgedCase(self._swapped(case, small), hidden=True, extreme=True)
            yield from self._narrow_special(floating)
        if len(self._signature.required) > 1:
            yield JudgedCase(self._small("one tensor twice", last=WIDE), hidden=True, twice=True)
        for name, default in self._defaults():
            share = self._share("share", name)
            others = {"another": default * share}
            if TINY[0] <= default <= TINY[1]:
                others |= {"a large": share, "a small": default * share / SMALLER}
            for kind, value in others.items():
                called = f"{kind} {name}"
                case = self._small(called, last=STEADY)
                if kind == "another" and known is not None:
                    # Code that keeps something by shape has met this one with the default.
                    case = msgspec.structs.replace(known, name=f"{self._prefix}: {called}")
                yield JudgedCase(case, hidden=True, scalars=((name, value),))

    def _share(self, kind: str, name: str) -> float:
        """Which part of its default a parameter gets."""
        return PARTS[0] + self._draw.number(PARTS[1], self._prefix, kind, name) / PARTS[2]

    def _defaults(self) -> Iterator[tuple[str, float]]:
        """Parameters of the entry point whose default is a positive number with a fraction, and that default."""
        for name, text in self._signature.defaults.items():
            default = ast.literal_eval(text)
            if isinstance(default, float) and 0 < default < math.inf:
                yield name, default

    def ragged(self, dtype: str, kind: str) -> Case:
        """About as large as the largest case of the dtype, no size a multiple of a vector or known from the task."""
        base = self.widest[dtype]
        return self._case(
            base,
            kind,
            cpu={axis: self._near(base, "cpu", axis, kind) for axis in base.cpu},
            gpu={axis: self._near(base, "gpu", axis, kind) for axis in base.gpu},
            distribution=self._draw.one_of(self.distributions(dtype), self._prefix, kind),
        )

    def _rough(self) -> Iterator[JudgedCase]:
        """Each case of the task with all that values may be, and other parameters: code that looks at sizes may not count on mild ones, nor
        on defaults, at any of them.
        """
        for base in self._bases:
            kind = f"rough values, {base.name}"
            scalars = tuple((name, default * self._share(kind, name)) for name, default in self._defaults())
            plain = self._case(base, kind, cpu=base.cpu, gpu=base.gpu, distribution=base.distribution)
            made = self._roughened(plain)
            if scalars or made.special or made.degenerate or made.case.distribution is not base.distribution:
                yield dataclasses.replace(made, scalars=scalars)
            for number in TELLING if len(made.degenerate) == 1 else ():
                if number not in made.degenerate:
                    case = msgspec.structs.replace(plain, name=f"{plain.name}, kind {number}")
                    yield JudgedCase(case, hidden=True, degenerate=(number,))

    def _roughened(self, case: Case) -> JudgedCase:
        """The case with outliers where the task has them, and with special values and degenerate rows where it allows them and there is room."""
        several = min(next(iter(each.values())) for each in (case.cpu, case.gpu)) >= CROWD
        kinds = EVERY_KIND if several else (self._draw.one_of(TELLING, self._prefix, case.name, "kind"),)
        return JudgedCase(
            msgspec.structs.replace(case, distribution=self._roughest(case)),
            hidden=True,
            special=several and Allowance.SPECIAL_VALUES in self._task.allows and "float" in case.dtype,
            degenerate=kinds if self._may_degenerate(case) else (),
        )

    def _may_degenerate(self, case: Case) -> bool:
        """Whether the task allows degenerate rows, and the case has enough values to make some of."""
        enough = min(math.prod(each.values()) for each in (case.cpu, case.gpu)) >= CROWD
        return Allowance.DEGENERATE_ROWS in self._task.allows and "float" in case.dtype and enough

    def _roughest(self, case: Case) -> Distribution:
        """Outliers, where the task has them in the case's dtype."""
        outlier = Distribution.OUTLIER
        return outlier if outlier in self.distributions(case.dtype) else case.distribution

    def _edges(self) -> Iterator[JudgedCase]:
        """One axis at its smallest, each in turn, then all of them."""
        for edge in (1, 0):
            axes = [
                axis
                for axis, one in self._ranges.items()
                if one.vary and one.low <= edge and edge % one.step == 0
            ]
            for axis in axes:
                yield from self._edge(f"{axis}={edge}", [axis], edge)
            if edge == 1 and len(axes) > 1:
                yield from self._edge("all sizes 1", axes, edge)

    def _edge(self, kind: str, axes: Sequence[str], size: int) -> Iterator[JudgedCase]:
        """The axes at one size, in a dtype drawn from those in which the task has no such case; none where it has all."""
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
        """As long along the last axis as a GPU's cases are, which is most often what rows or sums run along, and narrow otherwise.

        None where open cases are about as long, or where the task leaves no choice of sizes.
        """
        *others, axis = self._ranges
        kind = f"long {axis}"
        base = self.widest[self._draw.one_of(tuple(self.widest), self._prefix, kind)]
        high = min(LONG, max(case.gpu[axis] for case in self._task.cases))
        if high <= 2 * max(case.cpu[axis] for case in self._task.cases):
            return
        sizes = {other: self._within(base.cpu[other], other, *NARROW, kind) for other in others}
        sizes[axis] = self._within(base.cpu[axis], axis, high * 7 // 8, high, kind)
        case = self._case(base, kind, cpu=sizes, gpu=sizes, distribution=self._roughest(base))
        masked = Allowance.SPECIAL_VALUES in self._task.allows and "float" in base.dtype
        if sizes[axis] != base.cpu[axis] and math.prod(sizes.values()) <= LONG_VOLUME:
            yield JudgedCase(case, hidden=True, masked=masked)

    def _between(self) -> Iterator[JudgedCase]:
        """On a GPU anything between small sizes and its own, on `cpu` many rows that are narrow."""
        kind = "between"
        base = self.widest[self._draw.one_of(tuple(self.widest), self._prefix, kind)]
        first, *others = self._ranges
        if base.cpu == base.gpu:
            made = {axis: self._halfway(base.cpu[axis], axis, kind) for axis in base.cpu}
        elif others:
            made = {axis: self._within(base.cpu[axis], axis, *SMALL, kind) for axis in others}
            made = {first: self._within(base.cpu[first], first, *BETWEEN, kind)} | made
        else:
            made = {
                first: self._within(base.cpu[first], first, 2 * base.cpu[first], 3 * base.cpu[first], kind)
            }
        if made != base.cpu and (base.cpu == base.gpu or math.prod(made.values()) <= LONG_VOLUME):
            case = self._case(base, kind, cpu=made, gpu=made, distribution=Distribution.STANDARD)
            if _distinct(case) not in self._known:
                yield self._roughened(case)

    def _halfway(self, largest: int, axis: str, kind: str) -> int:
        """A size between small ones and the largest, each power of two as likely as the others."""
        doublings = (largest // SMALL[1]).bit_length()
        if not doublings:
            return largest
        low = SMALL[1] << self._draw.number(doublings, self._prefix, kind, axis, "doublings")
        return self._within(largest, axis, low, min(2 * low, largest), kind)

    def _aligned(self) -> Iterator[JudgedCase]:
        """Few rows, and along the other axes sizes that vectors divide and blocks do not; degenerate rows where the task allows them,
        then in each dtype with the same sizes: what is kept by shape is to be right in all.
        """
        floating = tuple(dtype for dtype in self.widest if "float" in dtype)
        degenerate = Allowance.DEGENERATE_ROWS in self._task.allows and bool(floating)
        kind = "degenerate rows" if degenerate else f"multiples of {ALIGNED}"
        dtypes = floating if degenerate else (self._draw.one_of(tuple(self.widest), self._prefix, kind),)
        base = self.widest[self._draw.one_of(dtypes, self._prefix, kind)]
        first, *others = self._ranges
        made = {axis: self._vectors(base.cpu[axis], axis, kind) for axis in others or (first,)}
        if others:
            made = {first: self._within(base.cpu[first], first, *SEVERAL, kind)} | made
        if not degenerate and not any(size % ALIGNED == 0 and size % BLOCKED for size in made.values()):
            return
        for dtype in dtypes:
            called = f"{kind} {dtype}" if degenerate else kind
            case = self._case(
                self.widest[dtype], called, cpu=made, gpu=made, distribution=Distribution.STANDARD
            )
            if not degenerate and _distinct(case) in self._known:
                return
            yield JudgedCase(case, hidden=True, degenerate=EVERY_KIND if degenerate else ())

    def _blocked(self) -> Iterator[JudgedCase]:
        """Rows in eights, and along the other axes multiples of 32, as most people have: blocks divide them."""
        kind = f"multiples of {BLOCKED}"
        base = self.widest[self._draw.one_of(tuple(self.widest), self._prefix, kind)]
        first, *others = self._ranges
        if not others or any(
            self._ranges[axis].step > 1 or self._ranges[axis].high is not None for axis in self._ranges
        ):
            return
        made = {axis: BLOCKED * (2 + self._draw.number(BLOCKS, self._prefix, kind, axis)) for axis in others}
        made = {first: CROWD + VECTOR * self._draw.number(2, self._prefix, kind, first)} | made
        case = self._case(base, kind, cpu=made, gpu=made, distribution=base.distribution)
        if all(self._ranges[axis].vary for axis in made) and math.prod(made.values()) <= LONG_VOLUME:
            yield self._roughened(case)

    def _swapped(self, case: Case, small: Case) -> Case:
        """The case with the sizes of a small one in reverse, as many elements in another shape, where all axes take any size."""
        sizes = dict(zip(small.cpu, reversed(small.cpu.values()), strict=True))
        if any(not one.vary or one.step > 1 or one.low > SMALL[0] for one in self._ranges.values()):
            return case
        if any(one.high is not None and one.high < SMALL[1] for one in self._ranges.values()):
            return case
        return msgspec.structs.replace(case, cpu=sizes, gpu=sizes)

    def _vectors(self, kept: int, axis: str, kind: str) -> int:
        """A size about as large as `kept` that is a multiple of `ALIGNED` and none of `BLOCKED`; `kept` where the axis allows none."""
        allowed = self._ranges[axis]
        if not allowed.vary:
            return kept
        step = math.lcm(ALIGNED, allowed.step)
        low, high = max(kept * 5 // 8, allowed.low, step), max(kept * 5 // 4, 3 * step)
        high = high if allowed.high is None else min(high, allowed.high)
        low += -low % step
        for attempt in range(TRIES if high >= low else 0):
            number = self._draw.number((high - low) // step + 1, self._prefix, kind, axis, str(attempt))
            size = low + number * step
            if size % BLOCKED and ("cpu", axis, size) not in self._shown:
                return size
        return kept

    def _narrow_special(self, dtypes: Sequence[str]) -> Iterator[JudgedCase]:
        """NaN and Inf where an axis has one element, each in turn: code for that alone may not look at values."""
        for axis, one in self._ranges.items():
            if not one.vary or one.low > 1 or one.step > 1:
                continue
            case = self._small(f"NaN and Inf, {axis}=1", dtypes, sizes=MARKED)
            sizes = case.cpu | {axis: 1}
            yield JudgedCase(msgspec.structs.replace(case, cpu=sizes, gpu=sizes), hidden=True, special=True)

    def _small(
        self,
        kind: str,
        dtypes: Sequence[str] = (),
        *,
        sizes: tuple[int, int] = SMALL,
        last: Sequence[tuple[int, int]] = (),
    ) -> Case:
        """Sizes from the first to the second of `sizes`, the last of one of `last`, where it says any; the same on every device."""
        dtype = self._draw.one_of(tuple(dtypes or self.widest), self._prefix, kind)
        base = self.widest[dtype]
        made = {axis: self._within(base.cpu[axis], axis, *sizes, kind) for axis in base.cpu}
        if last:
            *others, final = base.cpu
            room = LONG_VOLUME // max(math.prod(made[axis] for axis in others), 1)
            low, high = self._draw.one_of(last, self._prefix, kind, "last")
            made[final] = self._within(base.cpu[final], final, low, min(high, max(room, low)), kind)
        return self._case(base, kind, cpu=made, gpu=made, distribution=Distribution.STANDARD)

    def _near(self, base: Case, device: str, axis: str, kind: str) -> int:
        """A size close to the base's: larger on `cpu`, where a kernel made for the open sizes shows; within them on a GPU."""
        size = _sizes(base, device)[axis]
        low, high = size + 1, size * 5 // 4
        if device == "gpu" or self._ranges[axis].high is not None:
            most = max(_sizes(case, device)[axis] for case in self._task.cases)
            low, high = size * 5 // 8, min(high, most)
        if size < SMALL[0] + 1:
            low, high = SMALL[0], SMALL[1] if device == "cpu" else SMALL[0] + 1
        return self._within(size, axis, low, high, f"{kind} {device}", device)

    def _within(self, kept: int, axis: str, low: int, high: int, kind: str, device: str = "cpu") -> int:
        """A size from `low` to `high` as the axis allows; `kept` where it allows no other."""
        allowed = self._ranges[axis]
        low = max(low, allowed.low, 2)
        high = high if allowed.high is None else min(high, allowed.high)
        if not allowed.vary or high < low:
            return kept
        for attempt in range(TRIES):
            size = low + self._draw.number(high - low + 1, self._prefix, kind, axis, str(attempt))
            size -= size % allowed.step
            ragged = allowed.step % VECTOR == 0 or size % VECTOR or high - low < VECTOR
            if size >= low and ragged and (device, axis, size) not in self._shown:
                return size
        return kept

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


def _ranges(task: Task) -> dict[str, _Range]:
    """Of each axis: what `task.toml` says, else what its open cases show.

    They show that an axis varies freely when no number divides all its sizes; an axis that is always a multiple of
    something may stand in a relation to others, or be a power of two, and is left as the cases have it.
    """
    found = {}
    for axis in task.cases[0].cpu:
        said = task.axes.get(axis)
        if said is not None:
            found[axis] = _Range(low=said.min, high=None, step=said.multiple_of, vary=said.vary)
            continue
        shown = {_sizes(case, device)[axis] for case in task.open_cases for device in ("cpu", "gpu")}
        free = math.gcd(*(size for size in shown if size > 1)) == 1
        found[axis] = _Range(low=min(shown), high=max(shown), step=1, vary=free)
    return found


def _sizes(case: Case, device: str) -> Mapping[str, int]:
    return case.cpu if device == "cpu" else case.gpu


def _distinct(case: Case) -> tuple[object, ...]:
    return (case.dtype, tuple(sorted(case.cpu.items())), case.distribution)
