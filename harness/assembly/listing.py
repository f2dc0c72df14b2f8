"""Instructions of a kernel by kind, width and source line, and its loops, from AMDGCN or PTX."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from harness.wire.results.kernel_counts import CodeCounts
from suites.task import TextEnum


class Kind(TextEnum):
    """The kinds of instruction that a listing has; any other instruction is `OTHER`."""

    LOAD = "load"
    """From global memory, also past the registers into local memory."""
    STORE = "store"
    ATOMIC = "atomic"
    LDS = "LDS"
    """Local memory; NVIDIA calls it shared memory."""
    MATRIX = "matrix"
    WAIT = "wait"
    BARRIER = "barrier"
    SPILL = "spill"
    SCALAR = "scalar"
    BRANCH = "branch"
    OTHER = ""


class Instruction(NamedTuple):
    """One instruction."""

    row: int
    """0-based line of the text."""
    text: str
    """Without comment."""
    kind: Kind
    bits: int = 0
    """Width of a load or store for each lane; 0 if unknown."""
    line: int | None = None
    """Line of the kernel's file that calls it; `None` for code of the compiler."""
    past_registers: bool = False
    """A load that writes into local memory."""
    is_tile: bool = False
    """A copy of a tile by a descriptor (TMA), which has no width."""


class Loop(NamedTuple):
    """A loop: the instructions from its first label to its last backward branch."""

    first: int
    last: int
    """Places in `Listing.instructions`, both inside."""
    depth: int
    """1 for an outermost loop."""


class Listing(NamedTuple):
    """A kernel's assembly."""

    rows: tuple[str, ...]
    labels: dict[str, int]
    """The place in `instructions` of the instruction behind each label, in the order of the places."""
    instructions: tuple[Instruction, ...]
    loops: tuple[Loop, ...]
    """In the order of their labels."""

    def counts_of(self, loop: Loop | None = None) -> CodeCounts:
        """Return what a loop has with its inner loops, or the whole kernel."""
        inside = self.instructions if loop is None else self.instructions[loop.first : loop.last + 1]
        return count(inside, depth=0 if loop is None else loop.depth)

    @property
    def loop_counts(self) -> tuple[CodeCounts, ...]:
        """The counts of each loop."""
        return tuple(self.counts_of(loop) for loop in self.loops)


_AMD_COMMENT, _PTX_COMMENT = re.compile(r"\s*;.*"), re.compile(r"\s*//.*")
_LABEL = re.compile(r"([.$\w]+):")
_PLACE = re.compile(r"([^\s:@\[\]]+):(\d+):\d+")
_FIRST_FILE = re.compile(r'\.file\s+1\s+(?:"[^"]*"\s+)?"(?:[^"]*/)?([^"/]+)"')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)")
_PTX = re.compile(r"^\s*\.target\s+sm_", re.MULTILINE)
_HIDDEN = {".amdgpu_metadata": ".end_amdgpu_metadata"}
"""Blocks that look like instructions."""
_JUMP = re.compile(r"(?:^|\s)(?:s_c?branch\w*|bra(?:\.uni)?)\s+([.$\w]+)")


def parse(text: str) -> Listing:
    """Return the listing of a text by Triton; one without instructions for any other text."""
    is_ptx = bool(_PTX.search(text))
    sort, comment = (_sort_ptx, _PTX_COMMENT) if is_ptx else (_sort_amd, _AMD_COMMENT)
    rows = tuple(text.splitlines())
    first_file = _FIRST_FILE.search(text)
    kernel_file = first_file[1] if first_file else ""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    line: int | None = None
    is_code, hidden_until = True, ""
    for row, content in enumerate(rows):
        stripped = content.strip()
        if hidden_until or not stripped or stripped.startswith((";", "//")):
            hidden_until = "" if stripped == hidden_until else hidden_until
            continue
        if stripped[0] in ".$":
            label = _LABEL.match(stripped)
            if label:
                labels[label[1]] = len(instructions)
            elif loc := _LOC.match(stripped):
                line = _source_line(loc, stripped, kernel_file)
            elif stripped.startswith((".section", ".text")):
                is_code = stripped.startswith((".text", ".section\t.text"))
            else:
                hidden_until = _HIDDEN.get(stripped, "")
            continue
        code = comment.sub("", stripped)
        if (label := _LABEL.match(code)) and not is_ptx:
            labels[label[1]] = len(instructions)
        elif is_code and code.endswith(";" if is_ptx else ""):
            instructions.append(sort(row, code, stripped, line))
    return Listing(rows, labels, tuple(instructions), _loops(instructions, labels))


def _source_line(loc: re.Match[str], text: str, kernel_file: str) -> int | None:
    """The line of the kernel's file from which the code was inlined: the last place in the comment."""
    *_, (file, line) = [("", "0"), *_PLACE.findall(text)]
    if not file:
        file, line = (kernel_file if loc[1] == "1" else ""), loc[2]
    return int(line) or None if file == kernel_file else None


def jump_target(branch: str) -> str:
    """Return the label that a branch names; empty for a branch to no label."""
    jump = _JUMP.search(branch)
    return jump[1] if jump else ""


def _loops(instructions: Sequence[Instruction], labels: dict[str, int]) -> tuple[Loop, ...]:
    """Return the loops in the order of their first instruction: from the target of a backward jump to the last such jump.

    The depth of a loop is 1 plus the number of loops around it.
    """
    ends: dict[str, int] = {}
    for place, instruction in enumerate(instructions):
        if instruction.kind is Kind.BRANCH:
            target = jump_target(instruction.text)
            start = labels.get(target)
            if start is not None and start <= place and _reaches(instructions, labels, start, place):
                ends[target] = max(place, ends.get(target, 0))
    spans = sorted((labels[target], -last) for target, last in ends.items())
    return tuple(
        Loop(first, -last, 1 + sum(a <= first and last >= b for a, b in spans[:index]))
        for index, (first, last) in enumerate(spans)
    )


_NO_WAY_ON = re.compile(r"(?:s_branch|s_endpgm|s_setpc|bra\b|ret\b|exit\b|trap\b)")


def _reaches(instructions: Sequence[Instruction], labels: dict[str, int], first: int, last: int) -> bool:
    """Whether control comes from `first` to `last` between them: a backward branch may also lead to shared code at the end."""
    starts, seen = [first], set[int]()
    while starts:
        for place in range(starts.pop(), last + 1):
            if place == last:
                return True
            if place in seen:
                break
            seen.add(place)
            instruction = instructions[place]
            target = labels.get(jump_target(instruction.text)) if instruction.kind is Kind.BRANCH else None
            if target is not None and first <= target <= last:
                starts.append(target)
            if _NO_WAY_ON.match(instruction.text):
                break
    return False


# AMDGCN ------------------------------------------------------------------------------------------------------------------

_AMD_MEMORY = re.compile(r"(?:buffer|global|flat)_(load|store|atomic)_(\w+)")
_AMD_WORDS = {"dwordx4": 128, "dwordx3": 96, "dwordx2": 64, "dword": 32}
_LDS = re.compile(r"\blds\b")
_AMD_KINDS = (
    (("ds_",), Kind.LDS),
    (("v_mfma", "v_smfmac", "v_wmma"), Kind.MATRIX),
    (("s_wait",), Kind.WAIT),
    (("s_barrier",), Kind.BARRIER),
    (("scratch_",), Kind.SPILL),
    (("s_cbranch", "s_branch"), Kind.BRANCH),
    (("s_",), Kind.SCALAR),
)


def _sort_amd(row: int, code: str, whole: str, line: int | None) -> Instruction:
    """Return an AMDGCN instruction with its kind; for a memory access also with its width.

    `whole` is the line with its comment.
    """
    opcode, _, operands = code.partition(" ")
    if "Folded" in whole:  # LLVM's comment on a spill and on its reload, in memory or in lanes of a register
        return Instruction(row, code, Kind.SPILL, line=line)
    memory = _AMD_MEMORY.match(opcode)
    if memory is None:
        kind = next((kind for starts, kind in _AMD_KINDS if opcode.startswith(starts)), Kind.OTHER)
        return Instruction(row, code, kind, line=line)
    suffix = memory[2]
    past_registers = memory[1] == "load" and (suffix.startswith("lds_") or bool(_LDS.search(operands)))
    return Instruction(
        row, code, Kind(memory[1]), _amd_bits(suffix.removeprefix("lds_")), line, past_registers
    )


def _amd_bits(suffix: str) -> int:
    width = suffix.removesuffix("_d16_hi").removesuffix("_d16")
    return _AMD_WORDS.get(width, 8 if "byte" in width else 16 if "short" in width else 0)


# PTX ---------------------------------------------------------------------------------------------------------------------

_PTX_ACCESS = re.compile(r"\b(ld|st)(?:\.\w+)*\.global\S*?(?:\.v(\d))?\.[busf](\d+)\b")
_PTX_ASYNC = re.compile(
    r"\bcp\.async\.c[ag]\.shared\.global\S*\s+\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)"
)
_PTX_KINDS = (
    (re.compile(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)\b"), Kind.MATRIX),
    (re.compile(r"\bcp\.async\.bulk(?:\.tensor\.\dd)?\.shared::\w+\.global\b"), Kind.LOAD),
    (re.compile(r"\bcp\.async\.bulk(?:\.tensor\.\dd)?\.global\b"), Kind.STORE),
    (
        re.compile(r"\b(?:cp\.async(?:\.bulk)?\.wait_|wgmma\.wait_group|mbarrier\.t\w+_wait|tcgen05\.wait)"),
        Kind.WAIT,
    ),
    (re.compile(r"\b(?:bar\.sync|bar\.warp|barrier\.)"), Kind.BARRIER),
    (re.compile(r"\b(?:ld|st)\.local\b"), Kind.SPILL),
    (re.compile(r"\b(?:(?:ld|st)(?:\.\w+)*\.shared|ldmatrix|stmatrix)"), Kind.LDS),
    (re.compile(r"\b(?:atom|red)\."), Kind.ATOMIC),
    (re.compile(r"(?:^|\s)bra\b"), Kind.BRANCH),
)


def _sort_ptx(row: int, code: str, _whole: str, line: int | None) -> Instruction:
    """Return a PTX instruction with its kind; for a load or store also with the bits that a lane moves."""
    if access := _PTX_ACCESS.search(code):
        kind = Kind.LOAD if access[1] == "ld" else Kind.STORE
        return Instruction(row, code, kind, int(access[2] or 1) * int(access[3]), line)
    if copy := _PTX_ASYNC.search(code):
        return Instruction(row, code, Kind.LOAD, int(copy[1], 0) * 8, line, past_registers=True)
    kind = next((kind for pattern, kind in _PTX_KINDS if pattern.search(code)), Kind.OTHER)
    return Instruction(row, code, kind, line=line, is_tile=kind is Kind.LOAD)


# Counts ------------------------------------------------------------------------------------------------------------------

_OUTSTANDING = re.compile(r"\bvmcnt\((\d+)\)")


def count(instructions: Sequence[Instruction], *, depth: int = 0) -> CodeCounts:
    """Return how many instructions of each kind there are; with `depth` 0, `instructions` are a whole kernel."""
    kinds = Counter(instruction.kind for instruction in instructions)
    lines = [instruction.line for instruction in instructions if instruction.line is not None]
    return CodeCounts(
        instructions=len(instructions),
        depth=depth,
        line=min(lines, default=None),
        loads=_widths(instructions, Kind.LOAD),
        stores=_widths(instructions, Kind.STORE),
        past_registers=sum(instruction.past_registers for instruction in instructions),
        tile_loads=sum(instruction.is_tile for instruction in instructions),
        atomics=kinds[Kind.ATOMIC],
        lds=kinds[Kind.LDS],
        matrix=kinds[Kind.MATRIX],
        waits=kinds[Kind.WAIT],
        barriers=kinds[Kind.BARRIER],
        spills=kinds[Kind.SPILL],
        wait_distance=_wait_distance(instructions, repeats=depth > 0),
    )


def _widths(instructions: Iterable[Instruction], kind: Kind) -> dict[str, int]:
    widths = Counter(
        instruction.bits
        for instruction in instructions
        if instruction.kind is kind and not instruction.is_tile
    )
    return {str(bits): times for bits, times in sorted(widths.items(), reverse=True)}


def _wait_distance(instructions: Sequence[Instruction], *, repeats: bool) -> int | None:
    """The fewest instructions between a global load and the wait for it on AMD; `None` without such a pair.

    `vmcnt(n)` waits until at most n loads and stores are under way, which end in their order. A loop is followed for two rounds.
    """
    under_way: list[tuple[int, bool]] = []
    shortest: int | None = None
    for place, instruction in enumerate(chain(instructions, instructions if repeats else ())):
        if instruction.kind in (Kind.LOAD, Kind.STORE):
            under_way.append((place, instruction.kind is Kind.LOAD))
        elif instruction.kind is Kind.WAIT and (limit := _OUTSTANDING.search(instruction.text)):
            ended = under_way[: max(len(under_way) - int(limit[1]), 0)]
            del under_way[: len(ended)]
            between = [place - start - 1 for start, is_load in ended if is_load]
            shortest = min(between if shortest is None else (shortest, *between), default=None)
    return shortest
