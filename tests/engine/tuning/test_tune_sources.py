"""Launch parameters in the text of a kernel: the tuner finds them, and its edits change only the launch."""

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
from engine.tuning.launch_config import launch_config
from harness import Target, target
from harness.hardware.targets import targets
from suites import baseline_source, load_suite

GFX942 = target("gfx942")
KERNEL = '''@triton.jit
def add_kernel(x, n, BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr = 64):
    """Größe und `num_warps` stehen auch hier."""
    for start in range(0, n, BLOCK):
        tl.store(x + start, num_warps)
'''


def by_name(source: str, gpu: Target = GFX942) -> dict[str, Knob]:
    return {knob.name: knob for knob in knobs_of(source, gpu)}


def values(source: str, name: str, gpu: Target = GFX942) -> list[str]:
    knob = by_name(source, gpu).get(name)
    return [choice.shown for choice in knob.choices] if knob else []


@dataclass
class Kernel:
    """Fake kernel that records its launches."""

    launched: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *arguments, **options: self.launched.append((grid, arguments, options))


def launched(source: str) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Run `main(100_000)` and return its launches."""
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


DICTIONARY = (
    KERNEL
    + """
CONFIG = {"BLOCK": 1024, "num_warps": 8}


def main(n):
    size = 2 * n
    add_kernel[(triton.cdiv(n, CONFIG["BLOCK"]),)](None, n, **CONFIG, num_stages=2, waves_per_eu=size)
"""
)


def test_dictionary_of_launch_parameters_is_swept_and_read() -> None:
    assert launch_config(DICTIONARY) == {"BLOCK": 1024, "num_warps": 8, "num_stages": 2}
    assert (values(DICTIONARY, "BLOCK")[0], values(DICTIONARY, "num_warps")[0]) == ("2048", "16")
    (change,) = [knob.choices[0].edits for knob in knobs_of(DICTIONARY, GFX942) if knob.name == "BLOCK"]
    assert launch_config(apply_edits(DICTIONARY, change))["BLOCK"] == 2048
    changed_later = DICTIONARY + "\n\ndef other(block):\n    CONFIG['BLOCK'] = block\n"
    passed_on = DICTIONARY + "\n\nCONFIG.update(BLOCK=64)\n"
    for source in (changed_later, passed_on):
        assert launch_config(source) == {"num_stages": 2}
        assert values(source, "BLOCK") == []


OPTIONS = {"num_warps": ("4", "8 if n > 500 else 4", "WARPS"), "num_stages": ("2",), "waves_per_eu": ("2",)}
BLOCKS = ("1024", "block", "min(1024, triton.next_power_of_2(n))", "side(n)", "BLOCK_SIZE", "(1024)")
ENDS = ("", ",", "  # why, (really)", ", # a comma, and a )", ",\n", "\\\n")
BREAKS = (" ", "\n        ", "  # 1024\n        ", "\r\n        ")


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Draw a module that launches the kernel once, in one of many notations."""
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
def test_each_choice_changes_only_the_launch(source: str) -> None:
    knobs = knobs_of(source, GFX942)
    assert apply_edits(source, [edit for knob in knobs for edit in knob.present.edits]) == source
    [(_, arguments, options)] = launched(source)
    kernel = ast.dump(ast.parse(source).body[2])
    for knob in knobs:
        for choice in knob.choices:
            changed = apply_edits(source, choice.edits)
            assert changed.count("\n") == source.count("\n")
            assert ast.dump(ast.parse(changed).body[2]) == kernel, "the kernel is unchanged"
            [(_, arguments_now, options_now)] = launched(changed)
            assert arguments_now == arguments
            different = {name for name in options | options_now if options.get(name) != options_now.get(name)}
            assert different == set(knob.name.split(", ")) & {*OPTIONS, "BLOCK"}, (knob.name, choice.shown)


@given(modules(), st.data())
def test_choices_of_all_knobs_can_be_combined(source: str, data: st.DataObject) -> None:
    chosen = [data.draw(st.sampled_from(knob.choices)) for knob in knobs_of(source, GFX942)]
    changed = apply_edits(source, [edit for choice in chosen for edit in choice.edits])
    [(_, _, options)] = launched(changed)
    assert {"num_warps", "BLOCK"} <= {*options}


@pytest.mark.parametrize("gpu", targets(), ids=lambda gpu: gpu.name)
def test_edits_of_shipped_baselines_keep_valid_source(gpu: Target) -> None:
    for task in load_suite("starter"):
        source = baseline_source(task)
        knobs = knobs_of(source, gpu)
        assert knobs, task.id
        assert apply_edits(source, [edit for knob in knobs for edit in knob.present.edits]) == source
        for knob in knobs:
            for choice in knob.choices:
                ast.parse(apply_edits(source, choice.edits))


def launch(arguments: str, *, grid: str = "(1,)", before: str = "", decorators: str = "") -> str:
    return f"{before}\n{decorators}{KERNEL}\ndef main(n):\n    add_kernel[{grid}]({arguments})\n"


GROUPED = launch("x, n, GROUP_M=8, NUM_XCDS=8").replace(
    "BLOCK: tl.constexpr", "GROUP_M: tl.constexpr, NUM_XCDS: tl.constexpr"
)
CONDITIONAL = launch("x, n, BLOCK=b, num_warps=8 if n == 8 else 4")


@pytest.mark.parametrize(
    ("source", "name", "gpu", "choices"),
    [
        # 64 lanes a wave: 16 waves are 1024 threads.
        (launch("x, n, BLOCK=b, num_warps=8"), "num_warps", GFX942, ["16", "4", "2"]),
        (launch("x, n, BLOCK=b, num_warps=8"), "num_warps", target("sm_90"), ["16", "4", "32", "2"]),
        (launch("x, n, b"), "num_warps", GFX942, ["8", "2", "16", "1"]),
        (launch("x, n, BLOCK=triton.next_power_of_2(n)"), "BLOCK", GFX942, []),
        (launch("x, n, BLOCK=1024, HEAD_DIM=64"), "HEAD_DIM", GFX942, []),
        (launch("x, n, BLOCK=1000"), "BLOCK", GFX942, []),
        (GROUPED, "GROUP_M", GFX942, ["16", "4", "32", "2"]),
        (GROUPED, "NUM_XCDS", GFX942, ["1"]),
        (GROUPED, "NUM_XCDS", target("gfx90a"), ["1"]),
        (CONDITIONAL, "num_warps", GFX942, ["16|8", "4|2"]),
    ],
)
def test_parameter_has_the_choices_of_its_kind(
    source: str, name: str, gpu: Target, choices: list[str]
) -> None:
    assert values(source, name, gpu) == choices


def test_launch_options_depend_on_the_target() -> None:
    dots = launch("x, n, b").replace("tl.store(", "tl.dot(")
    assert "kpack" in by_name(dots)
    assert "kpack" not in by_name(dots, target("gfx950")), "gfx950 accepts only 1"
    assert {"waves_per_eu", "matrix_instr_nonkdim", "schedule_hint"} <= {*by_name(dots)}
    assert {*by_name(dots, target("sm_80"))} == {"num_warps", "num_stages", "maxnreg"}
    assert "num_ctas" in by_name(dots, target("sm_90"))
    assert "kpack" not in by_name(launch("x, n, b")), "no matrix product"


def test_literal_block_changes_in_launch_and_grid() -> None:
    source = launch("x, n, BLOCK=1024", grid="(triton.cdiv(n, 1024),)")
    changed = apply_edits(source, by_name(source)["BLOCK"].choices[0].edits)
    assert "add_kernel[(triton.cdiv(n, 2048),)](x, n, BLOCK=2048)" in changed


def test_named_block_changes_only_if_it_is_assigned_once() -> None:
    source = launch("x, n, BLOCK=SIZE", grid="(triton.cdiv(n, SIZE),)", before="SIZE = 512\n")
    assert "SIZE = 1024\n" in apply_edits(source, by_name(source)["BLOCK"].choices[0].edits)
    twice = source.replace("SIZE = 512", "SIZE = 512\nSIZE = 256")
    assert "BLOCK" not in by_name(twice)
    elsewhere = source + "\ndef other():\n    global SIZE\n    SIZE = 128\n"
    assert "BLOCK" not in by_name(elsewhere)


def test_conditional_values_keep_their_conditions() -> None:
    changed = apply_edits(CONDITIONAL, by_name(CONDITIONAL)["num_warps"].choices[0].edits)
    assert "num_warps=16 if n == 8 else 8" in changed


def test_autotuned_kernel_can_be_frozen_to_one_config() -> None:
    tuned = """@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512, "waves_per_eu": 2}, num_warps=4),  # small
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=["n"],
)
"""
    knobs = by_name(launch("x, n", decorators=tuned))
    assert {*knobs} == {"autotune"}, "a launch cannot set options of the configs"
    frozen = apply_edits(launch("x, n", decorators=tuned), knobs["autotune"].choices[1].edits)
    assert 'configs=[triton.Config({"BLOCK": 1024}, num_warps=8)],' in frozen
    made = tuned.replace("configs=[", "configs=[*more, ")
    assert not by_name(launch("x, n", decorators=made)), "the list of configs is not a literal"


@pytest.mark.parametrize(
    "source", ["", "def f(:", "x = 1", KERNEL, launch("**options"), launch("*arguments")]
)
def test_source_without_readable_parameters_has_few_knobs(source: str) -> None:
    assert {knob.name for knob in knobs_of(source, GFX942)} <= {"num_warps", "num_stages", "waves_per_eu"}
    for knob in knobs_of(source, GFX942):
        for choice in knob.choices:
            ast.parse(apply_edits(source, choice.edits))


def test_deep_expression_is_accepted() -> None:
    deep = "\n\ndef table(n):\n    return " + " + ".join(["n"] * 2500) + "\n"
    assert "num_warps" in by_name(launch("x, n, b") + deep)


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="two edits"):
        apply_edits("abcdef", [Edit(0, 3, "x"), Edit(2, 4, "y")])
