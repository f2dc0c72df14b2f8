"""Resources of compiled kernels on each target: registers, spills, local memory, occupancy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from harness import Evaluation, KernelResources
from harness.assembly.code_texts import named_kernel
from harness.wire.limits import memory_words
from harness.wire.results.evaluation import GridFit
from sessions.state.code_facts import code_figures, code_pairs, code_words, loop_title
from sessions.state.ranking import lowest_occupancy
from tui.facts.tables import Cell, Column, Number, Row, Table, row
from tui.facts.vocabulary import UNKNOWN, counted

CASES_CELLS = 28
MOST_KERNELS = 3
LEGEND = (
    "limit: what keeps more waves (AMD, a SIMD) or warps (NVIDIA, an SM) from fitting; MFMA, MMA: matrix instructions; "
    "loads: how many x width in bits; @n: config n of an autotuned kernel"
)


class BinaryConfigs(NamedTuple):
    """Launches that were compiled to the same code: one row instead of one a case."""

    kernel: KernelResources
    """The first of them."""
    cases: tuple[str, ...]
    grids: tuple[str, ...]
    """Each grid once."""
    fits: tuple[GridFit, ...]
    """How each grid fills the device; one for each case and grid."""

    @property
    def name(self) -> str:
        """The kernel's name, with the index of its config if it is autotuned."""
        return named_kernel(self.kernel)


def binaries(kernels: Iterable[KernelResources]) -> list[BinaryConfigs]:
    """Return the launches of one target in their order; those that differ in their case only become one."""
    groups: dict[str, list[KernelResources]] = {}
    for kernel in kernels:
        alike = msgspec.structs.replace(
            kernel, case="", binary_sha256="", grid=None, compile_seconds=None, fits=(), texts={}
        )
        groups.setdefault(repr(alike), []).append(kernel)
    return [
        BinaryConfigs(
            group[0],
            tuple(dict.fromkeys(kernel.case for kernel in group)),
            tuple(dict.fromkeys("x".join(map(str, kernel.grid)) for kernel in group if kernel.grid)),
            tuple(fit for kernel in group for fit in kernel.fits),
        )
        for group in groups.values()
    ]


def code_changes(before: Evaluation, after: Evaluation) -> Table:
    """Return a row for each figure of the code that differs: before and after, of at most `MOST_KERNELS` kernels."""
    pairs: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    for old, new in code_pairs(before, after):
        figures = code_figures(old), code_figures(new)
        if figures[0] != figures[1] and figures not in pairs.values():
            pairs[new.kernel if new.kernel not in pairs else f"{new.kernel}, {new.case}"] = figures
    kernels = dict(list(pairs.items())[:MOST_KERNELS])
    changes = {
        name: [f"{old.get(name, 0):g} -> {new.get(name, 0):g}" for old, new in kernels.values()]
        for name in dict.fromkeys(name for figures in kernels.values() for name in (*figures[0], *figures[1]))
        if any(old.get(name) != new.get(name) for old, new in kernels.values())
    }
    columns = (
        Column("before -> after", keep=True),
        *(Column(name, inner_cut=True, most=24) for name in kernels),
    )
    more = f"and {counted(len(pairs) - MOST_KERNELS, 'more kernel')}" if len(pairs) > MOST_KERNELS else ""
    return Table("", columns, tuple(row(name, *cells) for name, cells in changes.items())).with_sentences(
        more
    )


def is_amd(kernels: Iterable[KernelResources]) -> bool:
    """True if the target counts in AMD's units."""
    return any(kernel.vgprs is not None for kernel in kernels)


def resource_tables(evaluation: Evaluation) -> list[Table]:
    """Return a table for each target: registers, spills, local memory, occupancy, and how each kernel was launched."""
    targets = dict.fromkeys((*evaluation.resources, *evaluation.compile_errors))
    return [_target_table(evaluation, target) for target in targets]


def _target_table(evaluation: Evaluation, target: str) -> Table:
    kernels = evaluation.resources.get(target, ())
    compiled = binaries(kernels)
    amd = is_amd(kernels)
    columns = (
        Column("kernel"),
        Column("cases", most=CASES_CELLS),
        Number("VGPRs" if amd else "registers"),
        Number("AGPRs", drop=7, if_known=True),
        Number("SGPRs", drop=6, if_known=True),
        Number("spills"),
        Number("LDS" if amd else "shared"),
        Number("waves" if amd else "warps"),
        Column("limit", keep=True, drop=3),
        Number("MFMA" if amd else "MMA", drop=2, if_known=True),
        Column("loads", keep=True, drop=4, if_known=True),
        Number("rounds", drop=8, if_known=True),
        Number("tail idle", drop=5, if_known=True),
        Column("flags", drop=1, if_known=True),
    )
    message = evaluation.compile_errors.get(target, "")
    is_said = evaluation.error is not None and message.strip() in evaluation.error.message
    # The message may quote a note.
    notes = sorted({note for kernel in kernels for note in kernel.notes if note not in message})
    return Table(
        f"{target}, compiled at GPU sizes",
        columns,
        tuple(_kernel_row(binary, amd=amd) for binary in compiled),
        (
            *(
                Cell(text, "dim")
                for binary in compiled
                for text in (launch_words(binary), *loop_lines(binary))
            ),
            *(
                (Cell("does not compile" if is_said else f"does not compile: {message}", "bad"),)
                if message
                else ()
            ),
            *(Cell(note, "warn") for note in notes),
        ),
    )


def _kernel_row(binary: BinaryConfigs, *, amd: bool) -> Row:
    kernel, spilled = binary.kernel, spills(binary.kernel)
    unfit = kernel.occupancy == 0
    return row(
        binary.name,
        Cell(_short_list(binary.cases), "dim"),
        _number(registers(kernel)),
        _number(kernel.agprs),
        _number(kernel.sgprs),
        Cell(
            _number(spilled) if amd or spilled is None else memory_words(spilled), "bad" if spilled else "dim"
        ),
        "" if kernel.lds_bytes is None else memory_words(kernel.lds_bytes),
        Cell(_number(kernel.occupancy), "bad" if unfit else ""),
        Cell(kernel.occupancy_limit or "", "bad" if unfit else "dim"),
        _number(kernel.matrix_instructions),
        Cell(loads(kernel), "dim"),
        _range([fit.rounds for fit in binary.fits]),
        Cell(_range([round(fit.tail_idle * 100) for fit in binary.fits], " %"), "dim"),
        Cell(" ".join(kernel.flags), "bad"),
    )


def _short_list(cases: tuple[str, ...]) -> str:
    whole = ", ".join(cases)
    return whole if len(whole) <= CASES_CELLS or len(cases) == 1 else f"{cases[0]} +{len(cases) - 1}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"


def _range(values: Sequence[int], unit: str = "") -> str:
    """Return `3` if all values are equal, else `1-16`; empty without values."""
    if not values:
        return ""
    least, most = min(values), max(values)
    return f"{least:,}{unit}" if least == most else f"{least:,}-{most:,}{unit}"


def registers(kernel: KernelResources) -> int | None:
    """Return vector registers on AMD, registers on NVIDIA."""
    return kernel.vgprs if kernel.vgprs is not None else kernel.registers


def spills(kernel: KernelResources) -> int | None:
    """Return what a kernel spills: registers on AMD, bytes on NVIDIA."""
    known = [value for value in (kernel.vgpr_spills, kernel.sgpr_spills) if value is not None]
    return sum(known) if known else kernel.spill_bytes


def loads(kernel: KernelResources) -> str:
    """Return the global loads by width, widest first: `8x128b 4x16b`."""
    widths = sorted(((int(bits), times) for bits, times in kernel.load_widths.items()), reverse=True)
    return " ".join(f"{times}x{bits}b" for bits, times in widths)


def launch_words(binary: BinaryConfigs) -> str:
    """Return configuration, cases and grid of a kernel, and what its row may have no room for."""
    kernel = binary.kernel
    facts = [
        " ".join(f"{name}={value}" for name, value in kernel.config.items()),
        f"grid {binary.grids[0]}" if len(binary.grids) == 1 else "",
        f"loads {loads(kernel)}" if kernel.load_widths else "",
        f"{kernel.scratch_bytes} B of scratch" if kernel.scratch_bytes else "",
        f"{kernel.local_loads} loads past the registers" if kernel.local_loads else "",
        f"{kernel.tile_loads} copies of tiles" if kernel.tile_loads else "",
        *grid_words(binary.fits),
        kernel.failure,
    ]
    return f"{binary.name} for {', '.join(binary.cases)}: {'; '.join(filter(None, facts)) or UNKNOWN}"


def loop_lines(binary: BinaryConfigs) -> list[str]:
    """Return a line for each loop of a kernel: `matmul_kernel, loop at line 17: 83 instructions, 16 MFMA, 6 waits`."""
    amd = binary.kernel.vgprs is not None
    return [f"{binary.name}, {loop_title(loop)}: {code_words(loop, amd=amd)}" for loop in binary.kernel.loops]


def grid_words(fits: Sequence[GridFit]) -> list[str]:
    """Return a phrase for each way in which grids fill the device, after its cases if there are several ways."""
    cases: dict[str, list[str]] = {}
    for fit in fits:
        cases.setdefault(fit_words(fit), []).append(fit.case)
    if len(cases) == 1:
        return list(cases)
    return [f"{', '.join(dict.fromkeys(names))}: {words}" for words, names in cases.items()]


def fit_words(grid: GridFit) -> str:
    """Return how a grid fills the device: rounds, the idle share of the last round, workgroups of each die."""
    words = (
        f"{counted(grid.workgroups, 'workgroup')} on {grid.compute_units} units, {grid.per_unit} a unit: "
        f"{counted(grid.rounds, 'round')}, {grid.tail_idle:.0%} idle in the last"
    )
    least = "" if grid.die_least == grid.die_most else f"{grid.die_least} to "
    return words + (f", {least}{grid.die_most} a die" if grid.dies > 1 else "")


class ResourceUse(NamedTuple):
    """Resources that all kernels of an attempt use on the first target; `None` for a count that the target does not have."""

    registers: int | None
    """The most of any kernel."""
    spills: int | None
    """Sum over the kernels: registers on AMD, bytes on NVIDIA."""
    local_bytes: int | None
    """The most of any kernel."""
    waves: float | None
    """The lowest occupancy."""


def usage_of(evaluation: Evaluation) -> ResourceUse:
    """Return the resources of an attempt on its first target; kernels without a binary do not count."""
    kernels = [kernel for kernel in next(iter(evaluation.resources.values()), ()) if not kernel.failure]

    def counts(fact: Callable[[KernelResources], int | None]) -> list[int]:
        return [value for kernel in kernels if (value := fact(kernel)) is not None]

    spilled = counts(spills)
    return ResourceUse(
        max(counts(registers), default=None),
        sum(spilled) if spilled else None,
        max(counts(lambda kernel: kernel.lds_bytes), default=None),
        lowest_occupancy(evaluation),
    )
