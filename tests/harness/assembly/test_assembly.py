"""Listings of AMDGCN and PTX, and the lines that are left of two texts with different registers."""

from __future__ import annotations

import pytest

from harness.assembly.code_texts import normal_lines
from harness.assembly.listing import Kind, parse
from tests.support.judge.assemblies import AMD, PTX


def test_loop_of_amdgcn_has_its_counts_by_kind_and_width() -> None:
    listing = parse(AMD)
    [loop] = listing.loop_counts
    assert (loop.instructions, loop.matrix, loop.lds, loop.waits, loop.barriers, loop.spills) == (
        9,
        1,
        1,
        2,
        1,
        1,
    )
    assert (loop.loads, loop.stores, loop.line) == ({"128": 1, "16": 1}, {}, 5)
    assert listing.counts_of().stores == {"64": 1}
    assert listing.counts_of().instructions == 15, "no directive and no metadata is an instruction"


def test_backward_branch_to_the_shared_end_of_a_kernel_is_no_loop() -> None:
    listing = parse(AMD)
    assert [loop.first for loop in listing.loops] == [listing.labels[".LBB0_0"]]


def test_inlined_code_belongs_to_the_line_that_calls_it() -> None:
    lines = {instruction.kind: instruction.line for instruction in parse(AMD).instructions}
    assert (lines[Kind.LOAD], lines[Kind.MATRIX], lines[Kind.STORE]) == (5, 6, 7)
    assert parse(AMD).instructions[-1].line is None, "line 0 is code of the compiler"


def test_wait_distance_is_that_of_the_load_whose_wait_comes_first() -> None:
    [loop] = parse(AMD).loop_counts
    assert loop.wait_distance == 2, "vmcnt(1) waits for the first of two loads"


def test_nested_loops_have_depths() -> None:
    text = AMD.replace("\t.loc\t1 5 20", ".LBB0_1:\n\t.loc\t1 5 20").replace(
        "\ts_barrier\n", "\ts_barrier\n\ts_cbranch_vccnz .LBB0_1\n"
    )
    assert [loop.depth for loop in parse(text.replace(".LBB0_1:\n", "\ts_nop 0\n.LBB0_1:\n", 1)).loops] == [
        1,
        2,
    ]


def test_ptx_has_the_same_counts() -> None:
    [loop] = parse(PTX).loop_counts
    assert (loop.loads, loop.past_registers, loop.matrix, loop.spills) == ({"128": 2}, 1, 1, 1)
    assert (loop.waits, loop.barriers, loop.line, loop.wait_distance) == (1, 1, 5, None)
    assert parse(PTX).counts_of().stores == {"32": 1}


@pytest.mark.parametrize(
    ("name", "text", "renamed"),
    [
        (
            "amdgcn",
            AMD,
            (("v13", "v99"), ("s[24:27]", "s[4:7]"), (".LBB0_0", ".LBB0_7"), (".loc\t1 5", ".loc\t1 9")),
        ),
        ("ptx", PTX, (("%rd1", "%rd7"), ("$L__BB0_1", "$L__BB0_4"))),
        ("ttgir", "%1 = tt.load %0 loc(#loc3)\n", (("%1", "%12"), ("#loc3", "#loc9"))),
        ("llir", "  %9 = shl i32 %8, 3, !dbg !28\n", (("%9", "%4"), ("!28", "!31"))),
        ("sass", "--:-:0:-:1\tIADD3 R1, UR4, R2, RZ;\n", (("R1", "R7"), ("UR4", "UR6"))),
    ],
)
def test_registers_labels_and_lines_make_no_difference(
    name: str, text: str, renamed: tuple[tuple[str, str], ...]
) -> None:
    renamed_text = text
    for old, new in renamed:
        assert old in renamed_text
        renamed_text = renamed_text.replace(old, new)
    assert normal_lines(text, name) == normal_lines(renamed_text, name)


def test_width_offset_and_order_make_a_difference() -> None:
    lines = normal_lines(AMD, "amdgcn")
    assert "  buffer_load_dwordx4 v[4], v, s[4], 0 offen" in lines
    for old, new in (("v[4:7]", "v[4:5]"), ("vmcnt(1)", "vmcnt(3)"), ("offset:4", "offset:8")):
        assert normal_lines(AMD.replace(old, new), "amdgcn") != lines
