"""Protects the reading of assembly and binaries: target lines of Triton versions, load widths, and mismatches."""

from __future__ import annotations

import struct

import msgspec
import pytest

from harness.worker.kit.binaries import BinaryUnreadable, amdgpu_note, from_cuda, from_hip, read_registers

KERNEL = {
    ".vgpr_count": 140,
    ".agpr_count": 12,
    ".sgpr_count": 40,
    ".vgpr_spill_count": 3,
    ".sgpr_spill_count": 1,
    ".private_segment_fixed_size": 16,
    ".max_flat_workgroup_size": 256,
}
ASSEMBLY = """
	.amdgcn_target "{target}"
	buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
	global_load_dwordx2 v[0:1], v[2:3], off
	global_load_ushort v0, v[2:3], off
	buffer_load_short_d16_hi v0, v4, s[0:3], 0 offen
	global_load_ubyte v0, v[2:3], off
	global_load_lds_dwordx4 v[2:3], off
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
	v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10
	ds_read_b128 v[0:3], v4
"""


def elf(sections: list[tuple[str, int, bytes]], *, flags: int = 0, abi: int = 0) -> bytes:
    """A 64-bit little-endian ELF file with these sections."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in sections) + b".names\0"
    body, headers = b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, kind, payload in [*sections, (".names", 3, names)]:
        at = names.index(name.encode() + b"\0")
        headers.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(body), len(payload), 0, 0, 1, 0))
        body += payload
    ident = b"\x7fELF" + bytes([2, 1, 1, 64, abi]) + bytes(7)
    head = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 64 + len(body), flags, 64, 0, 0, 64, len(headers), len(headers) - 1
    )
    return head + body + b"".join(headers)


def code_object(target: str) -> bytes:
    payload = msgspec.msgpack.encode({"amdhsa.kernels": [KERNEL], "amdhsa.target": target})
    gnu_note = struct.pack("<III", 4, 4, 3) + b"GNU\0" + bytes(4)
    note = struct.pack("<III", 7, len(payload), 32) + b"AMDGPU\0\0" + payload + bytes(-len(payload) % 4)
    return elf([(".text", 1, b"\0" * 16), (".note", 7, gnu_note + note)])


def cubin(sm: int, registers: int) -> bytes:
    frame = bytes([4, 0x11]) + struct.pack("<HII", 8, 5, 0)
    flag = bytes([3, 0x37]) + struct.pack("<H", 0x7C)
    info = frame + flag + bytes([4, 0x2F]) + struct.pack("<HII", 8, 5, registers)
    return elf([(".nv.info", 0x70000000, info)], flags=0x500500 | sm, abi=7)


@pytest.mark.parametrize(
    "target",
    ["amdgcn-amd-amdhsa--gfx942", "amdgcn-amd-amdhsa-unknown-gfx942", "amdgpu9.42-amd-amdhsa-unknown-gfx942"],
)
def test_target_line_of_every_triton_version_is_read(target: str) -> None:
    resources = from_hip(ASSEMBLY.format(target=target), code_object("amdgcn-amd-amdhsa--gfx942"))
    assert resources.architecture == "gfx942"


def test_amd_code_object_gives_all_figures() -> None:
    resources = from_hip(
        ASSEMBLY.format(target="amdgcn-amd-amdhsa--gfx942"), code_object("amdgcn-amd-amdhsa--gfx942")
    )
    assert resources.code.loads == {"128": 2, "64": 1, "16": 2, "8": 1}
    assert resources.code.past_registers == 1
    assert resources.code.matrix == 2
    assert (
        resources.vgprs,
        resources.agprs,
        resources.sgprs,
        resources.vgpr_spills,
        resources.sgpr_spills,
    ) == (140, 12, 40, 3, 1)
    assert (resources.scratch_bytes, resources.threads) == (16, 256)
    assert read_registers(code_object("gfx942")) == (140, 3)


def test_assembly_and_binary_of_different_targets_are_refused() -> None:
    with pytest.raises(BinaryUnreadable, match="the assembly is for gfx942, the binary for gfx90a"):
        from_hip(
            ASSEMBLY.format(target="amdgcn-amd-amdhsa--gfx942"), code_object("amdgcn-amd-amdhsa--gfx90a")
        )
    with pytest.raises(BinaryUnreadable, match="sm_90, the binary for sm_80"):
        from_cuda(".target sm_90a\n", cubin(80, 32), "")


def test_cubin_figures_come_from_binary_ptx_and_log() -> None:
    ptx = """.version 8.7
.target sm_90a
	@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
	ld.global.b16 %rs1, [ %rd2 + 0 ];
	cp.async.cg.shared.global [ %r5 + 0 ], [ %rd3 + 0 ], 0x10, %r6;
	wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%r7}, %rd4, %rd5, %p2, 1, 1, 0, 1;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r8}, {%r9}, {%r10}, {%r11};
"""
    log = "ptxas info : 24 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads"
    resources = from_cuda(ptx, cubin(90, 168), log)
    assert resources.architecture == "sm_90"
    assert (resources.registers, resources.spill_bytes, resources.code.matrix) == (168, 20, 2)
    assert resources.code.loads == {"128": 2, "16": 1}
    assert from_cuda(ptx, cubin(90, 168), "").spill_bytes is None


def test_loads_to_shared_memory_are_counted_separately() -> None:
    """Lines that Triton writes: buffer loads to LDS on gfx950, tile copies on sm_90, a load with device scope."""
    assembly = """
	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	buffer_load_dwordx4 v1, s[4:7], 0 offen lds
	buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen ; lds is where it goes later
"""
    resources = from_hip(assembly, code_object("amdgcn-amd-amdhsa--gfx950"))
    assert (resources.code.loads, resources.code.past_registers) == ({"128": 2}, 1)
    ptx = """.target sm_90a
	@%p4 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
	cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r1];
	cp.async.cg.shared.global [ %r5 + 0 ], [ %rd3 + 0 ], 0x10, %r6;
	ld.relaxed.gpu.global.b32 %r7, [ %rd2 + 0 ];
	ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [ %r5 ];
"""
    resources = from_cuda(ptx, cubin(90, 32), "")
    assert (resources.code.loads, resources.code.past_registers, resources.code.tile_loads) == (
        {"128": 1, "32": 1},
        1,
        1,
    )


@pytest.mark.parametrize("binary", [b"", b"\x7fELF", b"MZ" * 64, elf([(".text", 1, b"")])])
def test_invalid_code_object_raises(binary: bytes) -> None:
    with pytest.raises(BinaryUnreadable):
        amdgpu_note(binary)
