"""Tables of what was compiled, counted, estimated and measured of one candidate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from harness import Evaluation, KernelResources
from harness.wire.evaluation import GridFit
from tui import vocabulary
from tui.cockpit.lines import clean, shorten
from tui.tables import Cell, Column, Row

NAME_CELLS, NAME_CELLS_NARROW = 30, 20
WIDE_TABLE = 100
CASES_CELLS = 28

NOTHING = Cell(vocabulary.UNKNOWN, "dim")


class Binary(NamedTuple):
    """Launches that were compiled to the same: one row instead of one a case."""

    kernel: KernelResources
    """The first of them."""
    cases: tuple[str, ...]
    grids: tuple[str, ...]
    """Each once."""

    @property
    def name(self) -> str:
        """The kernel's name, with the place of its config where it is autotuned."""
        tuned = "" if self.kernel.autotune_index is None else f" @{self.kernel.autotune_index}"
        return clean(self.kernel.kernel) + tuned


def binaries(kernels: Iterable[KernelResources]) -> list[Binary]:
    """Launches of one target in their order, those that differ in nothing but their case put together."""
    found: dict[tuple[object, ...], list[KernelResources]] = {}
    for each in kernels:
        alike = msgspec.structs.replace(
            each, case="", binary_sha256="", grid=None, compile_seconds=None, fits=()
        )
        found.setdefault((repr(alike),), []).append(each)
    return [
        Binary(
            group[0],
            tuple(dict.fromkeys(each.case for each in group)),
            tuple(dict.fromkeys("x".join(map(str, each.grid)) for each in group if each.grid)),
        )
        for group in found.values()
    ]


def is_amd(kernels: Iterable[KernelResources]) -> bool:
    """Whether their target counts in AMD's units."""
    return any(each.vgprs is not None for each in kernels)


def resource_columns(*, amd: bool) -> tuple[Column, ...]:
    """The columns of one target's table, by its maker's names."""
    return (
        Column("kernel", 10, NAME_CELLS),
        Column("cases", 8, CASES_CELLS, drop=3),
        Column("vgprs" if amd else "regs", 5, 5, right=True),
        Column("agprs", 5, 5, right=True, drop=7, if_known=True),
        Column("sgprs", 5, 5, right=True, drop=6, if_known=True),
        Column("spills", 6, 8, right=True),
        Column("LDS" if amd else "shared", 6, 8, right=True),
        Column("waves" if amd else "warps", 5, 5, right=True),
        Column("limit", 5, 9),
        Column("MFMA" if amd else "MMA", 5, 6, right=True, drop=2, if_known=True),
        Column("loads", 10, 30, drop=4, if_known=True),
        Column("rounds", 6, 6, right=True, drop=8, if_known=True),
        Column("tail idle", 9, 9, right=True, drop=5, if_known=True),
        Column("flags", 6, 16, drop=1, if_known=True),
    )


def resource_rows(target: str, found: Iterable[Binary], width: int) -> list[Row]:
    """One row a binary, for a table of so many cells."""
    name_cells = NAME_CELLS if width >= WIDE_TABLE else NAME_CELLS_NARROW
    return [Row(f"{target}/{number}", _resource_cells(each, name_cells)) for number, each in enumerate(found)]


def _resource_cells(binary: Binary, name_cells: int) -> tuple[Cell, ...]:
    kernel = binary.kernel
    registers = kernel.vgprs if kernel.vgprs is not None else kernel.registers
    spills = [value for value in (kernel.vgpr_spills, kernel.sgpr_spills) if value is not None]
    spilled = sum(spills) if spills else kernel.spill_bytes
    cases = clean(", ".join(binary.cases))
    if len(cases) > CASES_CELLS:
        others = f" +{len(binary.cases) - 1}" if len(binary.cases) > 1 else ""
        cases = shorten(clean(binary.cases[0]), CASES_CELLS - len(others)) + others
    unfit = kernel.occupancy == 0
    return (
        Cell(shorten(binary.name, name_cells)),
        Cell(cases, "dim"),
        _number(registers),
        _number(kernel.agprs),
        _number(kernel.sgprs),
        Cell(
            f"{spilled}{'' if spills or not spilled else ' B'}" if spilled is not None else "-",
            "bad" if spilled else "dim",
        ),
        _number(kernel.lds_bytes),
        Cell("-", "dim")
        if kernel.occupancy is None
        else Cell(f"{kernel.occupancy:g}", "bad" if unfit else ""),
        Cell(kernel.occupancy_limit or "-", "bad" if unfit else "dim"),
        _number(kernel.matrix_instructions),
        Cell(loads(kernel) or "-", "dim"),
        _number(kernel.fits[0].rounds if kernel.fits else None),
        Cell(f"{kernel.fits[0].tail_idle:.0%}", "dim") if kernel.fits else Cell("-", "dim"),
        Cell(" ".join(kernel.flags), "bad") if kernel.flags else Cell("-", "dim"),
    )


def loads(kernel: KernelResources) -> str:
    """`32:24 128:8`: width in bits and how many of them, narrow ones first."""
    widths = sorted(kernel.load_widths.items(), key=lambda each: int(each[0]))
    return " ".join(f"{bits}:{times}" for bits, times in widths)


def launch_facts(binary: Binary) -> str:
    """Everything about a launch that its row may not have room for."""
    kernel = binary.kernel
    registers = [
        f"{value} {name}" for name, value in (("agprs", kernel.agprs), ("sgprs", kernel.sgprs)) if value
    ]
    facts = [
        f"grid {binary.grids[0]}" if len(binary.grids) == 1 else "",
        f"loads {loads(kernel)}" if kernel.load_widths else "",
        ", ".join(registers),
        f"{kernel.scratch_bytes} B of scratch" if kernel.scratch_bytes else "",
        f"{kernel.local_loads} loads past the registers" if kernel.local_loads else "",
        f"{kernel.tile_loads} copies of tiles" if kernel.tile_loads else "",
        fit(kernel.fits[0]) if kernel.fits else "",
        clean(kernel.failure),
    ]
    return "; ".join(fact for fact in facts if fact)


def fit(grid: GridFit) -> str:
    """How a grid fills the device, in words: rounds, the tail, and what each die gets."""
    words = (
        f"{grid.workgroups} workgroups on {grid.compute_units} units, {grid.per_unit} a unit: "
        f"{grid.rounds} round{'s' if grid.rounds > 1 else ''}, {grid.tail_idle:.0%} idle in the last"
    )
    if grid.dies > 1:
        words += f", {grid.die_least} to {grid.die_most} a die"
    return words


def _number(value: int | None) -> Cell:
    return Cell("-", "dim") if value is None else Cell(str(value))


TRAFFIC_COLUMNS = (
    Column("case", 12, 24),
    Column("sizes", 16, 30, drop=7),
    Column("requested", 9, 9, right=True),
    Column("unique", 9, 9, right=True, drop=2),
    Column("minimal", 9, 9, right=True, drop=1),
    Column("req/min", 7, 7, right=True),
    Column("dot FLOPs", 9, 9, right=True, drop=3),
    Column("launches", 8, 8, right=True, drop=5),
    Column("programs", 8, 8, right=True, drop=6),
)
SAMPLED_COLUMNS = (
    Column("case", 12, 24),
    Column("sizes", 16, 30, drop=6),
    Column("requested", 9, 9, right=True),
    Column("a die at most", 13, 13, right=True, drop=2),
    Column("unique at most", 14, 14, right=True, drop=3),
    Column("minimal", 9, 9, right=True, drop=1),
    Column("req/min", 7, 7, right=True),
    Column("sampled", 12, 18, right=True, drop=4),
)
ESTIMATE_COLUMNS = (
    Column("target", 6, 8),
    Column("case", 12, 24),
    Column("sizes", 18, 30, drop=4),
    Column("est. at best", 12, 12, right=True),
    Column("limit", 7, 7, drop=2),
    Column("est. at worst", 13, 13, right=True),
    Column("limit", 7, 7, drop=3),
    Column("of the roofline", 15, 20, right=True, drop=1),
)


def traffic_rows(evaluation: Evaluation) -> list[Row]:
    """One row a case: bytes that the interpreter counted at `cpu` sizes."""
    rows = []
    for each in evaluation.traffic:
        requested = each.requested_read_bytes + each.requested_write_bytes
        share = requested / each.minimal_bytes if each.minimal_bytes else None
        rows.append(
            Row(
                each.case,
                (
                    Cell(each.case, ""),
                    Cell(_sizes(each.sizes), "dim"),
                    Cell(vocabulary.size(requested)),
                    Cell(vocabulary.size(each.unique_read_bytes + each.unique_write_bytes)),
                    Cell(vocabulary.size(each.minimal_bytes)),
                    Cell("-" if share is None else f"{share:.2f}"),
                    Cell(vocabulary.count(each.dot_flops) if each.dot_flops else "-"),
                    Cell(str(each.launches)),
                    Cell(str(each.programs)),
                ),
            )
        )
    return rows


def sampled_rows(evaluation: Evaluation) -> list[Row]:
    """One row a case: bytes at `gpu` sizes, from the programs that were sampled; an estimate."""
    rows = []
    for each in evaluation.sampled:
        requested = each.requested_read_bytes + each.requested_write_bytes
        rows.append(
            Row(
                f"sampled/{each.case}",
                (
                    Cell(each.case),
                    Cell(_sizes(each.sizes), "dim"),
                    Cell(vocabulary.size(requested)),
                    Cell(vocabulary.size(each.die_bytes)),
                    Cell(vocabulary.size(each.unique_high_bytes)),
                    Cell(vocabulary.size(each.minimal_bytes)),
                    Cell(f"{requested / each.minimal_bytes:.2f}" if each.minimal_bytes else "-"),
                    Cell(f"{each.sampled} of {each.programs}", "dim"),
                ),
            )
        )
    return rows


def estimate_rows(evaluation: Evaluation) -> list[Row]:
    """One row a target and case: two bounds, never one figure."""
    return [
        Row(
            f"{each.target}/{each.case}",
            (
                Cell(each.target, "key"),
                Cell(each.case),
                Cell(_sizes(each.sizes), "dim"),
                Cell(vocabulary.microseconds(each.low_us)),
                Cell(each.bound_low, "dim"),
                Cell(vocabulary.microseconds(each.high_us)),
                Cell(each.bound_high, "dim"),
                Cell(vocabulary.estimate(each.high_us / each.low_us)) if each.low_us > 0 else NOTHING,
            ),
        )
        for each in evaluation.estimate
    ]


def _sizes(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())
