"""Kernels run by their IR: what the interpreter gives where both read the text alike, and what the compiler reads where not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.worker.ttir.kinds import UnknownKind, kind_of
from harness.worker.ttir.text import Unreadable, parse
from tests.harness.driving import drive

pytestmark = pytest.mark.judge

ALIKE = (
    "arithmetic", "functions", "a device's library", "a device's predicate", "integers", "unsigned integers",
    "integers that overflow", "wide products", "comparisons", "least and most", "casts", "eight bits", "bits", "a sum", "places",
    "a pair reduced", "running sums", "shapes", "joined and split", "gathered", "counted", "a dot", "sorted", "loops",
    "a loop of blocks", "masks", "atomics", "block pointers", "descriptors", "programs", "annotated constants", "an early end",
)  # fmt: skip
FRESH = -7.0
"""What stands where kernels store."""
OTHER = ("mapped", "a reduction by a function", "outside", "wrong", "assembled", "typed")

MODULE = """
#loc = loc("kernels.py":3:0)
"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> i32, sym_name = "twice"}> ({
  ^bb0(%n: i32 loc("n"(#loc))):
    %0:2 = "scf.if"(%n) ({
      "scf.yield"(%n, %n) : (i32, i32) -> () loc(#loc2)
    }, {
      %1 = "arith.constant"() <{value = 7 : i32}> : () -> i32 loc(unknown)
      "scf.yield"(%1, %n) : (i32, i32) -> () loc(#loc2)
    }) {note = "a } and a \\" in a text"} : (i32) -> (i32, i32) loc(#loc3)
    %1 = "arith.addi"(%0#0, %0#1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc2)
    "tt.return"(%1) : (i32) -> () loc(#loc)
  }) : () -> () loc(#loc)
}) {generic = 1 : i32} : () -> () loc(#loc)
#loc1 = loc("library.py":9:2)
#loc2 = loc("kernels.py":4:8)
#loc3 = loc("total"(#loc4))
#loc4 = loc(callsite(#loc1 at #loc2))
"""


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("lowering.py", *ALIKE, *OTHER)


@pytest.mark.parametrize("what", ALIKE)
def test_what_both_read_alike_is_the_same(seen: Any, what: str) -> None:
    assert "error" not in seen[what], seen[what]
    stored, wanted = seen[what]["out"], seen[what]["interpreted"]
    assert FRESH not in stored
    for at, (got, expected) in enumerate(zip(stored, wanted, strict=True)):
        same = math.isclose(got, expected, rel_tol=1e-5, abs_tol=1e-5)
        assert same or (math.isnan(got) and math.isnan(expected)), (at, got, expected)


def test_all_programs_of_a_launch_run(seen: Any) -> None:
    assert seen["arithmetic"]["launches"] == [6]


def test_a_function_that_branches_on_single_elements_is_run_for_each(seen: Any) -> None:
    assert seen["mapped"]["out"] == pytest.approx([3 * abs(x) for x in seen["x"]])


def test_an_argument_takes_the_type_of_its_annotation(seen: Any) -> None:
    """300 in eight bits is 44."""
    assert seen["typed"]["out"] == [44 * 1.25] * 64


def test_an_access_outside_every_tensor_is_told_with_its_line(seen: Any) -> None:
    found = seen["outside"]
    assert (found["error"], found["told"]) == ("Wrong", "load of 64 elements outside every tensor")
    assert found["line"] > seen["line of wrong"] - 40


def test_what_the_compiler_refuses_is_told_in_its_words(seen: Any) -> None:
    assert seen["wrong"]["error"] == "NotLowered"
    assert "power of 2" in seen["wrong"]["told"]


def test_an_operation_that_is_not_known_here_is_named(seen: Any) -> None:
    assert (seen["assembled"]["error"], seen["assembled"]["told"]) == ("Unread", "tt.elementwise_inline_asm")


def test_regions_results_and_attributes_are_found_in_generic_text() -> None:
    function = parse(MODULE, "kernels.py")["twice"]
    (block,) = function.blocks
    choice, total, end = block.operations
    assert (choice.name, total.name, end.name) == ("scf.if", "arith.addi", "tt.return")
    assert [len(region) for region in choice.regions] == [1, 1]
    assert total.operands == choice.results
    assert end.operands == total.results
    assert choice.attributes["note"] == '"a } and a \\" in a text"'
    assert choice.result_kinds == ["i32", "i32"]


def test_a_name_within_a_region_is_not_the_same_name_behind_it() -> None:
    (block,) = parse(MODULE, "kernels.py")["twice"].blocks
    choice, total, _ = block.operations
    constant, handed = choice.regions[1][0].operations
    assert constant.results != total.results
    assert handed.operands[0] == constant.results[0]


def test_the_line_is_the_innermost_one_of_the_candidates_file() -> None:
    (block,) = parse(MODULE, "kernels.py")["twice"].blocks
    choice, total, end = block.operations
    assert (choice.line, total.line, end.line) == (4, 4, 3)
    assert choice.regions[1][0].operations[0].line is None


@pytest.mark.parametrize(
    "text", ["", "module {}", MODULE.replace("(%n) ({", "(%m) ({"), MODULE.replace(" : (i32) -> ()", "")]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text, "kernels.py")


def test_types_have_shapes_elements_and_what_they_point_at() -> None:
    assert kind_of("tensor<4x8x!tt.ptr<f16>>").shape == (4, 8)
    assert str(kind_of("tensor<4x8x!tt.ptr<f16>>").pointee) == "float16"
    assert kind_of("tensor<4x8x!tt.ptr<f16>>").dtype == kind_of("i64").dtype
    assert str(kind_of("tensor<4xbf16>").dtype) == "bfloat16"
    with pytest.raises(UnknownKind):
        kind_of("!tt.tensordesc<tensor<4x8xf16>>")
