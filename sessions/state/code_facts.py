"""Words for the counts of a kernel's assembly by loop, and for its difference to another attempt's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness import Evaluation, KernelResources
from harness.wire.results.kernel_counts import CodeCounts

from .ranking import is_chosen, long_cases, own_kernels

SHOWN = 3
"""Most kernels with a named difference."""
INSTRUCTIONS = "instructions"
TO_WAIT = "instructions from load to wait"
LDS, SHARED, REGISTERS, WAITS = "LDS accesses", "shared memory accesses", "registers", "waits"
MUCH = 0.2
"""Smallest relative change that counts, of figures that vary with every change of a source."""
_VARYING = frozenset((INSTRUCTIONS, TO_WAIT, LDS, SHARED, REGISTERS, WAITS))

_SINGULAR = {
    "instructions": "instruction",
    "loads": "load",
    "stores": "store",
    "copies": "copy",
    "atomics": "atomic",
    "accesses": "access",
    "waits": "wait",
    "barriers": "barrier",
    "spills": "spill",
}


def counts_of(code: CodeCounts, *, amd: bool) -> dict[str, int]:
    """Return what code has, by its name in words; what it has none of is left out."""
    counts = {
        INSTRUCTIONS: code.instructions,
        "MFMA" if amd else "MMA": code.matrix,
        **{f"loads of {bits} bits": times for bits, times in code.loads.items()},
        "loads past the registers": code.past_registers,
        "copies of tiles": code.tile_loads,
        **{f"stores of {bits} bits": times for bits, times in code.stores.items()},
        "atomics": code.atomics,
        LDS if amd else SHARED: code.lds,
        WAITS: code.waits,
        "barriers": code.barriers,
        "spills": code.spills,
        TO_WAIT: code.wait_distance or 0,
    }
    return {name: number for name, number in counts.items() if number}


def code_words(code: CodeCounts, *, amd: bool) -> str:
    """Return the counts in one line: `174 instructions, 12 MFMA, 8 loads of 128 bits, 3 waits`."""
    counts = counts_of(code, amd=amd)
    counts.pop(TO_WAIT, None)
    parts = [f"{number} {_singular(name) if number == 1 else name}" for name, number in counts.items()]
    if code.wait_distance is not None:
        parts.append(f"at least {code.wait_distance} instructions from a load to its wait")
    return ", ".join(parts)


def _singular(name: str) -> str:
    return " ".join(_SINGULAR.get(word, word) for word in name.split())


def loop_title(loop: CodeCounts) -> str:
    """Return `loop at line 17`, or `inner loop at line 20`."""
    place = f" at line {loop.line}" if loop.line is not None else ""
    return f"{'inner ' if loop.depth > 1 else ''}loop{place}"


def code_difference(before: Evaluation, after: Evaluation) -> str:
    """Return how the compiled code of two attempts differs on the first target; empty if it does not.

    One sentence a kernel and loop. The code of the case with the longest measured time comes first.

    Small changes of registers, waits and numbers of instructions are left out. Only cases that take longer than their launch
    count. An autotuned kernel counts with its chosen config, and not in cases for which that was not compiled. Empty too if
    the code of either is not known.
    """
    sentences: dict[str, list[str]] = {}
    costs: dict[str, float] = {}
    times_ms = {latency.case: latency.candidate_ms for latency in after.latency}
    for old, row in code_pairs(before, after):
        if changes := list(_changes(old, row)):
            renamed = f" (`{old.kernel}` before)" if old.kernel != row.kernel else ""
            words = f"`{row.kernel}`{renamed}: {'; '.join(changes)}"
            sentences.setdefault(words, []).append(row.case)
            costs[words] = max(costs.get(words, 0.0), times_ms.get(row.case, 0.0))
    longest_first = sorted(sentences.items(), key=lambda item: -costs[item[0]])
    named = [f"in {', '.join(cases)} {words}." for words, cases in longest_first]
    more = f" (And {len(named) - SHOWN} more.)" if len(named) > SHOWN else ""
    return " ".join(f"{words[0].upper()}{words[1:]}" for words in named[:SHOWN]) + more


def code_pairs(before: Evaluation, after: Evaluation) -> Iterator[tuple[KernelResources, KernelResources]]:
    """Yield the kernels of two attempts that do the same work on the first target: (before, after), of long cases only."""
    if next(iter(before.resources), None) != next(iter(after.resources), ""):
        return
    long = long_cases(after)
    earlier, own = _own_code(before), _own_code(after)
    for (kernel, case), row in own.items():
        old = earlier.get((kernel, case)) or _only(earlier, own, case)
        if old is not None and not (long and case not in long):
            yield old, row


def code_figures(row: KernelResources) -> dict[str, float]:
    """Return resources, loops and counts of a kernel's code by their names in words; what it has none of is left out."""
    counts = counts_of(row.code, amd=row.vgprs is not None) if row.code is not None else {}
    figures = {**_resources(row), "loops": len(row.loops), **counts}
    return {name: number for name, number in figures.items() if number}


def _own_code(evaluation: Evaluation) -> dict[tuple[str, str], KernelResources]:
    """The code by kernel and case; of an autotuned kernel the chosen config, or the first if no choice is known."""
    rows: dict[tuple[str, str], KernelResources] = {}
    for row in own_kernels(evaluation):
        if row.code is not None and is_chosen(evaluation, row, row.case) is not False:
            rows.setdefault((row.kernel, row.case), row)
    return rows


def _only(
    earlier: Mapping[tuple[str, str], KernelResources],
    own: Mapping[tuple[str, str], KernelResources],
    case: str,
) -> KernelResources | None:
    """The earlier kernel of a case under another name, if both attempts have one kernel there."""
    rows = [row for key, row in earlier.items() if key[1] == case]
    return rows[0] if len(rows) == 1 and sum(key[1] == case for key in own) == 1 else None


def _changes(old: KernelResources, new: KernelResources) -> Iterator[str]:
    """How two kernels differ: registers and occupancy, then each loop; the whole kernel if they have no equal number of loops."""
    amd = new.vgprs is not None
    resources = _changed(_resources(old), _resources(new))
    if resources:
        yield resources
    if len(old.loops) != len(new.loops):
        yield f"loops {len(old.loops)} -> {len(new.loops)}"
    pairs = list(zip(old.loops, new.loops, strict=False)) if len(old.loops) == len(new.loops) else []
    if not pairs and old.code is not None and new.code is not None:
        pairs = [(old.code, new.code)]
    for before, after in pairs:
        words = _changed(counts_of(before, amd=amd), counts_of(after, amd=amd))
        if words:
            yield f"{loop_title(after)}: {words}" if after.depth else words


def _resources(row: KernelResources) -> dict[str, int | float | None]:
    return {
        REGISTERS: row.vgprs if row.vgprs is not None else row.registers,
        "spilled registers": row.vgpr_spills,
        "spilled scalar registers": row.sgpr_spills,
        "spilled bytes": row.spill_bytes,
        "bytes of shared memory" if row.vgprs is None else "bytes of LDS": row.lds_bytes,
        "occupancy": row.occupancy,
    }


def _changed(old: Mapping[str, float | None], new: Mapping[str, float | None]) -> str:
    """`registers 122 -> 96, occupancy 4 -> 5`; empty if nothing differs much."""
    pairs = {name: (old.get(name) or 0, new.get(name) or 0) for name in (*old, *new)}
    return ", ".join(
        f"{name} {before:g} -> {after:g}"
        for name, (before, after) in pairs.items()
        if abs(after - before) > (MUCH * max(before, after) if name in _VARYING else 0)
    )
