"""Reads the resources of a compiled kernel from its binary and assembly: registers, spills, and counts of its code."""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from elftools.common.exceptions import ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, Section

from harness.assembly.listing import parse
from harness.wire.results.kernel_counts import CodeCounts

NO_CODE = (".debug", ".rel.debug", ".rela.debug", ".nv_debug", ".symtab", ".strtab", ".shstrtab", ".comment")
"""Prefixes of the names of sections that no device loads."""
NT_AMDGPU_METADATA = 32
EIATTR_REGCOUNT = 0x2F
EIFMT_SVAL = 4

_AMDGCN_TARGET = re.compile(r'\.amdgcn_target\s+"([^"]+)"')
_GFX = re.compile(r"(gfx[0-9a-f]+)")
_GFX_DOTTED = re.compile(r"amdgpu(\d+)\.([0-9a-f])([0-9a-f])-")
_PTX_TARGET = re.compile(r"^\.target\s+(sm_\d+)", re.MULTILINE)
_PTXAS_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


class Resources(NamedTuple):
    """Resources of one kernel; `None` for a resource that the target does not have."""

    architecture: str
    """Architecture that binary and assembly both name, as `gfx942`."""
    code: CodeCounts
    loops: tuple[CodeCounts, ...]
    threads: int | None = None
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    registers: int | None = None
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None
    spill_bytes: int | None = None
    scratch_bytes: int | None = None


class BinaryUnreadable(ValueError):
    """The compiler of this target does not produce such a binary or assembly."""


def from_hip(assembly: str, binary: bytes) -> Resources:
    """Return a code object's resources: registers and spills from its AMDGPU note, the rest from the assembly.

    Raises `BinaryUnreadable`, also if note and assembly name different architectures.
    """
    note = amdgpu_note(binary)
    kernel = _first_kernel(note)
    target = _first(_GFX, str(note.get("amdhsa.target", "")))
    listing = parse(assembly)
    return Resources(
        architecture=_same_architecture(_amd_text_target(assembly), target),
        code=listing.counts_of(),
        loops=listing.loop_counts,
        threads=kernel.get(".max_flat_workgroup_size"),
        vgprs=kernel.get(".vgpr_count"),
        agprs=kernel.get(".agpr_count"),
        sgprs=kernel.get(".sgpr_count"),
        vgpr_spills=kernel.get(".vgpr_spill_count"),
        sgpr_spills=kernel.get(".sgpr_spill_count"),
        scratch_bytes=kernel.get(".private_segment_fixed_size"),
    )


def from_cuda(ptx: str, binary: bytes, ptxas_log: str) -> Resources:
    """Return a cubin's resources: registers from its attributes, spills from the log of ptxas, the rest from the PTX.

    Raises `BinaryUnreadable`, also if cubin and PTX name different architectures.
    """
    listing = parse(ptx)
    spills = _PTXAS_SPILLS.search(ptxas_log)
    return Resources(
        architecture=_same_architecture(_first(_PTX_TARGET, ptx), _cubin_target(binary)),
        code=listing.counts_of(),
        loops=listing.loop_counts,
        registers=cubin_registers(binary),
        spill_bytes=int(spills.group(1)) + int(spills.group(2)) if spills else None,
    )


def read_registers(binary: bytes) -> tuple[int, int]:
    """Return a kernel's registers per lane and its spilled registers, as a driver reports them after loading.

    A number that the binary does not state is 0; cubins state no spills. Raises `BinaryUnreadable`.
    """
    if any(owner == "AMDGPU" for owner, _, _ in _notes(binary)):
        kernel = _first_kernel(amdgpu_note(binary))
        return int(kernel.get(".vgpr_count", 0)), int(kernel.get(".vgpr_spill_count", 0))
    return cubin_registers(binary) or 0, 0


def amdgpu_note(binary: bytes) -> dict[str, Any]:
    """The AMDGPU metadata note of a code object (source: LLVM AMDGPUUsage, code object V3 and later)."""
    for owner, kind, payload in _notes(binary):
        if owner == "AMDGPU" and kind == NT_AMDGPU_METADATA:
            note = msgspec.msgpack.decode(payload)
            if isinstance(note, dict):
                return note
    raise BinaryUnreadable("the code object has no AMDGPU metadata note")


def cubin_registers(binary: bytes) -> int | None:
    """The largest register count among the kernels of a cubin, read from its attributes."""
    counts: list[int] = []
    for section in _sections(binary):
        if section.name != ".nv.info":
            continue
        payload = section.data()
        at = 0
        while at + 4 <= len(payload):
            form, attribute, size = struct.unpack_from("<BBH", payload, at)
            at += 4
            if form != EIFMT_SVAL:
                continue
            if attribute == EIATTR_REGCOUNT and size == 8:
                counts.append(int.from_bytes(payload[at + 4 : at + 8], "little"))
            at += size
    return max(counts, default=None)


def _same_architecture(text: str, binary: str) -> str:
    """Return the architecture that assembly and binary name. Raises `BinaryUnreadable` if they differ or name none."""
    if not text or text != binary:
        raise BinaryUnreadable(
            f"the assembly is for {text or 'no known target'}, the binary for {binary or 'none'}"
        )
    return binary


def _amd_text_target(assembly: str) -> str:
    target = _first(_AMDGCN_TARGET, assembly)
    dotted = _GFX_DOTTED.search(target)
    return _first(_GFX, target) or (f"gfx{''.join(dotted.groups())}" if dotted else "")


def _first(pattern: re.Pattern[str], text: str) -> str:
    """The first group of the first match; empty without a match."""
    match = pattern.search(text)
    return match.group(1) if match else ""


def _first_kernel(note: Mapping[str, Any]) -> Mapping[str, Any]:
    kernel: Mapping[str, Any] = (note.get("amdhsa.kernels") or [{}])[0]
    return kernel


def _cubin_target(binary: bytes) -> str:
    """The SM version in the ELF header's flags: in the second byte since ABI 8, in the first byte before."""
    header = ELFFile(io.BytesIO(binary)).header
    old, new = header["e_flags"] & 0xFF, (header["e_flags"] >> 8) & 0xFF
    return f"sm_{new if header['e_ident']['EI_ABIVERSION'] >= 8 else old}"


def code_digest(binary: bytes) -> str:
    """sha256 of a binary without debug information and symbols: they hold paths, the same code has the same digest.

    Raises `BinaryUnreadable` for bytes that are no binary.
    """
    digest = hashlib.sha256()
    bytes_allowed = 4 * len(binary)
    try:
        for section in _sections(binary):
            if section["sh_type"] == "SHT_NOBITS":
                continue
            bytes_allowed -= section["sh_size"]
            if bytes_allowed < 0:  # a forged table could name the same bytes for hours
                raise BinaryUnreadable("its sections are far larger than it is")
            if not section.name.startswith(NO_CODE):
                contents = section.data()
                digest.update(f"{section.name} {len(contents)}\n".encode() + contents)
    except (ELFError, OverflowError, ValueError) as error:
        raise BinaryUnreadable(f"the binary cannot be read: {error}") from error
    return digest.hexdigest()


def _sections(binary: bytes) -> Iterator[Section]:
    """Sections of an ELF file; raises `BinaryUnreadable` for any other bytes."""
    try:
        yield from ELFFile(io.BytesIO(binary)).iter_sections()
    except (ELFError, ConstructError, UnicodeDecodeError) as error:
        raise BinaryUnreadable(f"the binary is no ELF file: {error}") from error


def _notes(binary: bytes) -> Iterator[tuple[str, int | str, bytes]]:
    """Yield owner, type and payload of each note of an ELF file. Raises `BinaryUnreadable`."""
    for section in _sections(binary):
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                yield note["n_name"], note["n_type"], note["n_descdata"]
