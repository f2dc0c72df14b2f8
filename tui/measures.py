"""Tables of what was compiled, counted, estimated and measured of one candidate."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Evaluation, KernelResources, Latency
from tui import wording
from tui.grid import Cell, Column, Row
from tui.lines import clean

RESOURCE_COLUMNS = (
    Column("target", 6, 8),
    Column("kernel", 10, 32),
    Column("case", 8, 22, drop=1),
    Column("config", 16, 40, drop=8),
    Column("vgprs", 5, 5, right=True),
    Column("agprs", 5, 5, right=True, drop=7),
    Column("sgprs", 5, 5, right=True, drop=6),
    Column("spills", 6, 8, right=True),
    Column("LDS", 5, 8, right=True),
    Column("waves", 5, 5, right=True),
    Column("limit", 5, 9, drop=5),
    Column("matrix", 6, 6, right=True, drop=2),
    Column("loads", 10, 22, drop=4),
)


def resource_rows(evaluation: Evaluation) -> list[Row]:
    """One row a kernel, case and configuration compiled, by target."""
    return [
        Row(f"{target}/{number}", _resource_cells(target, kernel))
        for target, kernels in evaluation.resources.items()
        for number, kernel in enumerate(kernels)
    ]


def _resource_cells(target: str, kernel: KernelResources) -> tuple[Cell, ...]:
    amd = kernel.vgprs is not None
    registers = kernel.vgprs if amd else kernel.registers
    spills = [value for value in (kernel.vgpr_spills, kernel.sgpr_spills) if value is not None]
    spilled = sum(spills) if spills else kernel.spill_bytes
    config = " ".join(f"{name}={value}" for name, value in kernel.config.items())
    loads = " ".join(
        f"{bits}:{times}" for bits, times in sorted(kernel.load_widths.items(), key=lambda each: int(each[0]))
    )
    tuned = "" if kernel.autotune_index is None else f" @{kernel.autotune_index}"
    return (
        Cell(target, "key"),
        Cell(clean(kernel.kernel) + tuned),
        Cell(kernel.case, "dim"),
        Cell(clean(config), "dim"),
        _number(registers),
        _number(kernel.agprs),
        _number(kernel.sgprs),
        Cell(
            f"{spilled}{'' if spills or not spilled else ' B'}" if spilled is not None else "-",
            "bad" if spilled else "dim",
        ),
        _number(kernel.lds_bytes),
        Cell(
            "-" if kernel.occupancy is None else f"{kernel.occupancy:g}",
            "" if kernel.occupancy is not None else "dim",
        ),
        Cell(kernel.occupancy_limit or "-", "dim"),
        _number(kernel.matrix_instructions),
        Cell(loads or "-", "dim"),
    )


def _number(value: int | None) -> Cell:
    return Cell("-", "dim") if value is None else Cell(str(value))


LATENCY_COLUMNS = (
    Column("device", 6, 10),
    Column("case", 8, 24),
    Column("baseline", 9, 9, right=True, drop=2),
    Column("candidate", 9, 9, right=True, drop=1),
    Column("speedup", 7, 7, right=True),
    Column("95 % interval", 13, 13, right=True),
    Column("", 12, 12),
    Column("confirmed", 9, 9, drop=3),
)
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
ESTIMATE_COLUMNS = (
    Column("target", 6, 8),
    Column("case", 12, 24),
    Column("sizes", 18, 30, drop=4),
    Column("no faster than", 14, 14, right=True),
    Column("bound", 7, 7, drop=2),
    Column("if all went to memory", 21, 21, right=True),
    Column("bound", 7, 7, drop=3),
)


def latency_rows(latency: Iterable[Latency]) -> list[Row]:
    """One row a device and case. *Faster* and *slower* only where the interval excludes 1."""
    rows = []
    for each in latency:
        low, high = each.ci
        word, style = (
            ("faster", "good") if low > 1 else ("slower", "bad") if high < 1 else ("not resolved", "dim")
        )
        rows.append(
            Row(
                f"{each.device}/{each.case}",
                (
                    Cell(each.device, "key"),
                    Cell(each.case),
                    Cell(wording.microseconds(each.baseline_ms * 1e3)),
                    Cell(wording.microseconds(each.candidate_ms * 1e3)),
                    Cell(wording.times(each.speedup), style),
                    Cell(f"{low:.3f}-{high:.3f}"),
                    Cell(word, style),
                    Cell(each.confirmed, "dim"),
                ),
            )
        )
    return rows


def traffic_rows(evaluation: Evaluation) -> list[Row]:
    """One row a case: bytes that the interpreter counted at `cpu` sizes."""
    rows = []
    for each in evaluation.traffic:
        requested = each.requested_read_bytes + each.requested_write_bytes
        share = requested / each.minimal_bytes if each.minimal_bytes else None
        stray = f" {len(each.out_of_bounds)} out of bounds" if each.out_of_bounds else ""
        rows.append(
            Row(
                each.case,
                (
                    Cell(each.case + stray, "bad" if stray else ""),
                    Cell(_sizes(each.sizes), "dim"),
                    Cell(wording.size(requested)),
                    Cell(wording.size(each.unique_read_bytes + each.unique_write_bytes)),
                    Cell(wording.size(each.minimal_bytes)),
                    Cell("-" if share is None else f"{share:.2f}"),
                    Cell(wording.count(each.dot_flops) if each.dot_flops else "-"),
                    Cell(str(each.launches)),
                    Cell(str(each.programs)),
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
                Cell(wording.microseconds(each.low_us)),
                Cell(each.bound_low, "dim"),
                Cell(wording.microseconds(each.high_us)),
                Cell(each.bound_high, "dim"),
            ),
        )
        for each in evaluation.estimate
    ]


def _sizes(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())
