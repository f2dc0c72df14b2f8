"""Small texts in the syntax of Triton's compiler, and evaluations that name them."""

from __future__ import annotations

import gzip
import hashlib

import msgspec

from harness import Evaluation, KernelResources
from harness.assembly.listing import parse

AMD = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
kernel:                                 ; @kernel
	.file	1 "." "kernel.py"
	.loc	1 4 0 prologue_end              ; kernel.py:4:0
	s_load_dwordx2 s[2:3], s[0:1], 0x0
.LBB0_0:                                ; =>This Inner Loop Header: Depth=1
	.loc	1 5 20                          ; kernel.py:5:20
	buffer_load_dwordx4 v[4:7], v13, s[24:27], 0 offen
	buffer_load_ushort v8, v14, s[24:27], 0 offen
	.loc	2 293 36                        ; standard.py:293:36 @[ kernel.py:6:29 ]
	ds_read_b64 v[10:11], v3
	s_waitcnt vmcnt(1) lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[10:11], v[16:31]
	scratch_store_dword off, v9, off offset:4 ; 4-byte Folded Spill
	s_waitcnt vmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_0
	s_branch .LBB0_3
.LBB0_2:
	.loc	1 7 4                           ; kernel.py:7:4
	buffer_store_dwordx2 v[0:1], v2, s[8:11], 0 offen
	s_endpgm
.LBB0_3:
	.loc	1 0 0                           ; :0:0
	v_mov_b32_e32 v0, 0
	s_branch .LBB0_2
.Lfunc_end0:
	.section	.rodata,"a",@progbits
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
	.end_amdgpu_metadata
"""
PTX = """\
.version 8.7
.target sm_90a
.visible .entry kernel(
	.param .u64 kernel_param_0
)
{
	.reg .b32 	%r<9>;
	.file	1 "." "kernel.py"
	.loc	1 4 0                           // kernel.py:4:0
	ld.param.b64 	%rd1, [kernel_param_0];
$L__BB0_1:                              // =>This Inner Loop Header: Depth=1
	.loc	1 5 20                          // kernel.py:5:20
	@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
	cp.async.cg.shared.global [ %r5 + 0 ], [ %rd3 + 0 ], 0x10, %r6;
	cp.async.wait_group 	0;
	bar.sync 	0;
	wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%r7}, %rd4, %rd5, %p2, 1, 1, 0, 1;
	st.local.b32 	[%rd6], %r1;
	@%p1 bra 	$L__BB0_1;
	.loc	1 7 4                           // kernel.py:7:4
	st.global.b32 [ %rd2 + 0 ], { %r1 };
	ret;
}
	.section	.debug_info
	{
.b8 1
	}
"""
SOURCE = "import triton\n\n@triton.jit\ndef kernel(a, b):\n    x = load(a)\n    y = dot(x)\n    store(b, y)\n"


def packed(text: str) -> tuple[str, bytes]:
    """Return a text as a session keeps it: its name and its bytes."""
    data = gzip.compress(text.encode(), mtime=0)
    return hashlib.sha256(data).hexdigest(), data


def with_assembly(evaluation: Evaluation, text: str, *, vgprs: int = 96) -> Evaluation:
    """Return an evaluation with one kernel for gfx942 that has this assembly."""
    listing = parse(text)
    row = KernelResources(
        kernel="kernel", case="fp32", config={"BLOCK": "128"}, autotune_index=None, architecture="gfx942", binary_sha256="0" * 64,
        grid=None, vgprs=vgprs, code=listing.counts_of(), loops=listing.loop_counts, texts={"amdgcn": packed(text)[0]},
    )  # fmt: skip
    return msgspec.structs.replace(evaluation, resources={"gfx942": (row,)})
