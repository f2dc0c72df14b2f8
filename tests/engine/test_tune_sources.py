"""Finding launch parameters in a kernel's text and changing them there: nothing but the launch differs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tuning.edits import Edit, apply_edits
from engine.tuning.knobs import Knob, knobs_of
from harness import Target, target, targets
from suites import baseline_source, load_suite

GFX942 = target("gfx942")
KERNEL = '''@triton.jit
def add_kernel(x, n, BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr = 64):
    """Größe und `num_warps` stehen auch hier."""
    for start in range(0, n, BLOCK):
        tl.store(x + start, num_warps)
'''


def by_name(source: str, of: Target = GFX942) -> dict[str, Knob]:
    return {knob.name: knob for knob in knobs_of(source, of)}


def values(source: str, name: str, of: Target = GFX942) -> list[str]:
    knob = by_name(source, of).get(name)
    return [choice.shown for choice in knob.choices] if knob else []


@dataclass
class Kernel:
    """Takes a launch instead of a GPU."""

    launched: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *arguments, **options: self.launched.append((grid, arguments, options))


def launched(source: str) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """What `main(100_000)` launches."""
    kernel = Kernel()
    names: dict[str, Any] = {
        "triton": SimpleNamespace(
            jit=lambda _: kernel,
            cdiv=lambda a, b: -(-a // b),
            next_power_of_2=lambda n: 1 << (n - 1).bit_length(),
        ),
        "tl": SimpleNamespace(constexpr=int),
    }
    exec(compile(source, "kernel.py", "exec"), names)  # noqa: S102 -- the test's own text
    names["main"](100_000)
    return kernel.launched


OPTIONS = {"num_warps": ("4", "8 if n > 500 else 4", "WARPS"), "num_stages": ("2",), "waves_per_eu": ("2",)}
BLOCKS = ("1024", "block", "min(1024, triton.next_power_of_2(n))", "side(n)", "BLOCK_SIZE", "(1024)")
ENDS = ("", ",", "  # why, (really)", ", # a comma, and a )", ",\n", "\\\n")
BREAKS = (" ", "\n        ", "  # 1024\n        ", "\r\n        ")


@st.composite
def modules(draw: st.DrawFn) -> str:
    """A module that launches the kernel once, written in many ways."""
    brk = draw(st.sampled_from(BREAKS))
    given_options = draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True))
    written = [f"{name}={draw(st.sampled_from(OPTIONS[name]))}" for name in given_options]
    block = draw(st.sampled_from(BLOCKS))
    arguments = ["x", "(n)", *draw(st.permutations([f"BLOCK={block}", *written]))]
    end = draw(st.sampled_from(ENDS))
    if "#" in end:
        end += "\n    "
    launch = (
        f"add_kernel[(triton.cdiv(n, {draw(st.sampled_from(BLOCKS))}),)]({f',{brk}'.join(arguments)}{end})"
    )
    return (
        f"# Maße\nBLOCK_SIZE = 1024\nWARPS = 4\n\n\n{KERNEL}\n\n"
        "def side(n):\n    return max(16, min(1024, n))\n\n\n"
        f"def main(n):\n    x, block = n, 1024\n    {launch}\n"
    )


@given(modules())
def test_present_values_give_the_same_text_and_each_choice_changes_the_launch_alone(source: str) -> None:
    knobs = knobs_of(source, GFX942)
    assert apply_edits(source, [edit for knob in knobs for edit in knob.present.edits]) == source
    [(_, arguments, options)] = launched(source)
    kernel = ast.dump(ast.parse(source).body[2])
    for knob in knobs:
        for choice in knob.choices:
            changed = apply_edits(source, choice.edits)
            assert changed.count("\n") == source.count("\n")
            assert ast.dump(ast.parse(changed).body[2]) == kernel, "the kernel is what it was"
            [(_, arguments_now, options_now)] = launched(changed)
            assert arguments_now == arguments
            different = {name for name in options | options_now if options.get(name) != options_now.get(name)}
            assert different == set(knob.name.split(", ")) & {*OPTIONS, "BLOCK"}, (knob.name, choice.shown)


@given(modules(), st.data())
def test_choices_of_all_knobs_go_together(source: str, data: st.DataObject) -> None:
    chosen = [data.draw(st.sampled_from(knob.choices)) for knob in knobs_of(source, GFX942)]
    changed = apply_edits(source, [edit for choice in chosen for edit in choice.edits])
    [(_, _, options)] = launched(changed)
    assert {"num_warps", "BLOCK"} <= {*options}


@pytest.mark.parametrize("of", targets(), ids=lambda of: of.name)
def test_every_baseline_that_ships_reads_and_writes_back(of: Target) -> None:
    for task in load_suite("starter"):
        source = baseline_source(task)
        knobs = knobs_of(source, of)
        assert knobs, task.id
        assert apply_edits(source, [edit for knob in knobs for edit in knob.present.edits]) == source
        for knob in knobs:
            for choice in knob.choices:
                ast.parse(apply_edits(source, choice.edits))


def launch(arguments: str, *, grid: str = "(1,)", before: str = "", decorators: str = "") -> str:
    return f"{before}\n{decorators}{KERNEL}\ndef main(n):\n    add_kernel[{grid}]({arguments})\n"


def test_warps_are_powers_of_two_that_a_workgroup_holds() -> None:
    source = launch("x, n, BLOCK=b, num_warps=8")
    assert values(source, "num_warps") == ["16", "4", "2"], "64 lanes a wave: 16 waves are 1024 threads"
    assert values(source, "num_warps", target("sm_90")) == ["16", "4", "32", "2"]


def test_what_a_launch_does_not_give_is_added_beside_its_default() -> None:
    assert values(launch("x, n, b"), "num_warps") == ["8", "2", "16", "1"]


def test_options_are_those_of_the_target() -> None:
    dots = launch("x, n, b").replace("tl.store(", "tl.dot(")
    assert "kpack" in by_name(dots)
    assert "kpack" not in by_name(dots, target("gfx950")), "it takes 1 alone"
    assert {"waves_per_eu", "matrix_instr_nonkdim", "schedule_hint"} <= {*by_name(dots)}
    assert {*by_name(dots, target("sm_80"))} == {"num_warps", "num_stages", "maxnreg"}
    assert "num_ctas" in by_name(dots, target("sm_90"))
    assert "kpack" not in by_name(launch("x, n, b")), "no matrix product"


def test_a_block_that_the_sizes_decide_is_left_alone() -> None:
    source = launch("x, n, BLOCK=triton.next_power_of_2(n)")
    assert "BLOCK" not in by_name(source)


def test_a_block_written_at_the_launch_and_in_its_grid_changes_in_both() -> None:
    source = launch("x, n, BLOCK=1024", grid="(triton.cdiv(n, 1024),)")
    changed = apply_edits(source, by_name(source)["BLOCK"].choices[0].edits)
    assert "add_kernel[(triton.cdiv(n, 2048),)](x, n, BLOCK=2048)" in changed


def test_a_named_block_changes_where_it_is_named_and_only_where_it_is_named_once() -> None:
    source = launch("x, n, BLOCK=SIZE", grid="(triton.cdiv(n, SIZE),)", before="SIZE = 512\n")
    assert "SIZE = 1024\n" in apply_edits(source, by_name(source)["BLOCK"].choices[0].edits)
    twice = source.replace("SIZE = 512", "SIZE = 512\nSIZE = 256")
    assert "BLOCK" not in by_name(twice)
    elsewhere = source + "\ndef other():\n    global SIZE\n    SIZE = 128\n"
    assert "BLOCK" not in by_name(elsewhere)


def test_what_says_what_is_computed_is_no_parameter() -> None:
    assert "HEAD_DIM" not in by_name(launch("x, n, BLOCK=1024, HEAD_DIM=64"))
    assert "BLOCK" not in by_name(launch("x, n, BLOCK=1000")), "no power of two"


def test_group_and_die_constants_move_within_what_they_mean() -> None:
    source = launch("x, n, GROUP_M=8, NUM_XCDS=8").replace(
        "BLOCK: tl.constexpr", "GROUP_M: tl.constexpr, NUM_XCDS: tl.constexpr"
    )
    assert values(source, "GROUP_M") == ["16", "4", "32", "2"]
    assert values(source, "NUM_XCDS") == ["1"], "the target has 8 dies"
    assert values(source, "NUM_XCDS", target("gfx90a")) == ["1"]


def test_values_that_differ_keep_their_ratio_and_their_conditions() -> None:
    source = launch("x, n, BLOCK=b, num_warps=8 if n == 8 else 4")
    assert values(source, "num_warps") == ["16|8", "4|2"]
    assert "num_warps=16 if n == 8 else 8" in apply_edits(
        source, by_name(source)["num_warps"].choices[0].edits
    )


def test_an_autotuned_kernel_can_be_frozen_to_one_of_its_configs() -> None:
    tuned = """@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512, "waves_per_eu": 2}, num_warps=4),  # small
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=["n"],
)
"""
    knobs = by_name(launch("x, n", decorators=tuned))
    assert {*knobs} == {"autotune"}, "what configs give a launch cannot"
    frozen = apply_edits(launch("x, n", decorators=tuned), knobs["autotune"].choices[1].edits)
    assert 'configs=[triton.Config({"BLOCK": 1024}, num_warps=8)],' in frozen
    made = tuned.replace("configs=[", "configs=[*more, ")
    assert not by_name(launch("x, n", decorators=made)), "not written out"


@pytest.mark.parametrize(
    "source", ["", "def f(:", "x = 1", KERNEL, launch("**options"), launch("*arguments")]
)
def test_where_nothing_is_told_nothing_is_found(source: str) -> None:
    assert {knob.name for knob in knobs_of(source, GFX942)} <= {"num_warps", "num_stages", "waves_per_eu"}
    for knob in knobs_of(source, GFX942):
        for choice in knob.choices:
            ast.parse(apply_edits(source, choice.edits))


def test_a_deep_expression_is_no_trouble() -> None:
    deep = "\n\ndef table(n):\n    return " + " + ".join(["n"] * 2500) + "\n"
    assert "num_warps" in by_name(launch("x, n, b") + deep)


def test_edits_of_the_same_text_are_refused() -> None:
    with pytest.raises(ValueError, match="two edits"):
        apply_edits("abcdef", [Edit(0, 3, "x"), Edit(2, 4, "y")])
