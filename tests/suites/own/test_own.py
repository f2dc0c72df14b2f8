"""Kernel files as text: entry point, reference, inputs and sizes. No kernel runs."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from suites.errors import BadKernelFile
from suites.own.draft import Draft, Reference
from suites.own.entry import Function, KernelFile, called_with, names_in_expression
from suites.own.evidence import CallSeen, FirstCallSeen, InputsSeen, OutputSeen, ValueSeen
from suites.own.request import KernelRequest, parse_request
from suites.own.shapes import TensorShape, inputs_of, parse_shapes
from suites.own.sizes import CPU_ELEMENTS, MOST_CPU_ELEMENTS, design
from suites.own.texts import cost_text, inputs_text

FILE = """\
import torch
import triton
from functools import partial as bound

HALF = 2


@triton.autotune(configs=[], key=[])
@triton.jit
def kernel(x, other=0):
    pass


def launch(x, out):
    kernel[(1,)](x, out)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        launch(x, x)


def scale(x, factor=2.0):
    return Scale.apply(x)


def helper(x):
    return x * HALF


def scale_ref(factor, x):
    return helper(x) * factor


def scale_reference_of_more(x, y, z):
    return x


def benchmark(x):
    return scale(x)
"""


def test_entry_point_is_the_outermost_launching_function() -> None:
    file = KernelFile(Path("scale.py"), FILE)
    entry = file.find_entry()
    assert entry.signature == "scale(x, factor=2.0)"
    assert file.find_entry("launch").parameters == ("x", "out")
    reference = file.find_reference(entry)
    assert reference is not None
    assert called_with(reference, entry) == ("factor", "x")
    imports, text = file.extract(reference.name)
    assert imports == []
    assert (
        text
        == "HALF = 2\n\n\ndef helper(x):\n    return x * HALF\n\n\ndef scale_ref(factor, x):\n    return helper(x) * factor"
    )
    with pytest.raises(BadKernelFile, match="kernel is a kernel; name the function that launches it"):
        file.find_entry("kernel")
    with pytest.raises(BadKernelFile, match=r"no function 'scal' at its top \(did you mean 'scale'\?\)"):
        file.find_entry("scal")


def test_parameters_by_name_are_judged_and_those_behind_an_unplain_default_are_not() -> None:
    text = "def norm(x, eps=1e-6, dtype=torch.float16, y=None, *more, scale: float, kind=torch.half, **rest): kernel[(1,)](x)\n"
    entry = KernelFile(Path("norm.py"), text).find_entry("norm")
    assert entry.signature == "norm(x, eps=1e-06, *, scale)"
    assert entry.example == "x=8192x4096:fp16, scale=1"
    assert entry.left_out == ("dtype=torch.float16", "y=None", "kind=torch.half")
    reference = Reference("ref", "ref in norm.py", (), "", ("x", "scale"), by_name=("scale",))
    assert "def oracle(x, eps=1e-06, *, scale):\n    return ref(x, scale=scale)" in reference.module(entry)
    same_name = Reference("reference", "norm.py", (), "def reference(x): ...", ("x",))
    assert same_name.module(entry).count("def reference(") == 1
    with pytest.raises(BadKernelFile, match="norm has `/` among its parameters"):
        KernelFile(Path("norm.py"), "def norm(x, /): ...").find_entry("norm")


ANNOTATED = """\
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jaxtyping as jt
    from jaxtyping import Bool, Float, Float16 as Half, Int64


def norm(
    x: Half[torch.Tensor, "M cols=4096"], weight: "jt.BFloat16[Tensor, '2*M']", mask: Bool[Tensor, ""],
    idx: Int64[Tensor, "M"], loose: Float[Tensor, "M"], rows: Half[Tensor, "*rows"], other: Float32[Tensor, "4"],
    plain: torch.Tensor, kept: Half[Tensor, "M"] = None,
): kernel[(1,)](x)
"""


def test_only_annotations_that_say_one_dtype_and_each_dimension_give_inputs() -> None:
    entry = KernelFile(Path("norm.py"), ANNOTATED).find_entry("norm")
    assert entry.sure == {
        "x": TensorShape(("M", 4096), "float16", is_annotated=True),
        "weight": TensorShape(("2*M",), "bfloat16", is_annotated=True),
        "mask": TensorShape((), "bool", is_annotated=True),
    }
    assert entry.example.startswith("idx=M:int64:0..100, loose=8192x4096:fp16, rows=")
    cases = parse_shapes(["x=8:fp32, M=1,16"], entry.sure)
    assert [case.sizes for case in cases] == [{"M": 1}, {"M": 16}]
    assert [*cases[0].tensors] == ["x", "weight", "mask"]
    assert cases[0].tensors["x"] == TensorShape((8,), "float32")
    with pytest.raises(BadKernelFile, match="the size M has no value"):
        parse_shapes([""], entry.sure)


def test_an_expression_of_the_parameters_is_a_reference() -> None:
    entry = Function("norm", ("x", "weight", "out"), {})
    assert names_in_expression("F.rms_norm(x, x.shape[-1:], weight)", entry) == ("x", "weight")
    assert names_in_expression("(lambda top: (top.values, top.indices))(x.topk(8))", entry) == ("x",)
    with pytest.raises(
        BadKernelFile, match=r"reads w; it may read torch, F and the parameters of norm\(x, wei"
    ):
        names_in_expression("x * w", entry)
    with pytest.raises(BadKernelFile, match="no Python expression"):
        names_in_expression("F.silu(x", entry)


def test_inputs_of_each_case_become_readable_python() -> None:
    cases = parse_shapes(
        ["x=Mx2D:bf16, w=D:fp32:0..1, idx=M:int64:0..D, b=8x16:fp16:t, eps=1e-6, mask=none, M=1,64, D=4096"]
    )
    assert [case.sizes for case in cases] == [{"M": 1, "D": 4096}, {"M": 64, "D": 4096}]
    designed = design(cases, ("x", "w", "idx", "b", "eps", "mask"))
    text = inputs_text(designed, ("x", "w", "idx", "b", "eps", "mask"))
    for line in (
        'x = torch.randn(sizes["M"], 2 * sizes["D"], generator=generator).to(dtype)',
        'w = torch.rand(sizes["D"], generator=generator).to(torch.float32)',
        '"idx": (Integers(0, sizes["D"]), (sizes["M"],)),',
        'idx = torch.as_tensor(drawn["idx"], dtype=torch.int64)',
        'b = torch.randn(sizes["b_1"], sizes["b_0"], generator=generator).to(torch.float16).mT',
        'return {"x": x, "w": w, "idx": idx, "b": b, "eps": 1e-06, "mask": None}',
    ):
        assert line in text
    assert designed.case_names() == ["1x8192-bfloat16", "64x8192-bfloat16"]


def test_a_size_of_1_in_the_first_case_is_counted_once(tmp_path: Path) -> None:
    entry = Function("mean_of_rows", ("x",), {})
    cases = parse_shapes(["x=Mx4096:fp32, M=1,8192"])
    designed = design(cases, entry.parameters)
    seen = {
        case: FirstCallSeen(kernel=CallSeen((OutputSeen("float32", (sizes["M"], 1)),)))
        for case, sizes in enumerate(designed.sizes)
    }
    reference = Reference("itself", "itself", (), "", entry.parameters, is_kernel=True)
    file = KernelFile(Path("mean.py"), "")
    draft = Draft(file, entry, reference, designed, designed.sizes, seen, {}, None)
    (tmp_path / "cost.py").write_text(cost_text(draft))
    cost = run_path(str(tmp_path / "cost.py"))["cost"]
    for rows in (1, 8192):
        minimal_bytes = cost({"M": rows, "x_1": 4096}, "float32").minimal_bytes
        assert minimal_bytes == 4 * (rows * 4096 + rows)


def test_elements_between_strides_are_the_same_in_each_draw() -> None:
    import torch  # no other test here needs it

    names: dict[str, Any] = {}
    designed = design(parse_shapes(["x=3x4:fp32:strides=8x2"]), ("x",))
    exec(inputs_text(designed, ("x",)), names)  # noqa: S102 -- our own text
    for _ in range(2):
        x = names["make_inputs"](designed.sizes[0], torch.float32, torch.Generator().manual_seed(1))["x"]
        assert x.stride() == (8, 2)
        assert x.as_strided((23,), (1,))[1::2].tolist() == [0.0] * 11
        torch.full((1 << 10,), 7.0)  # fills memory that the next draw may get


@pytest.mark.parametrize(
    "shapes", ["x=8192x22016:fp16, out=8192x11008:fp16", "a=4096x4096:fp16, b=4096x14336:fp16"]
)
def test_sizes_for_the_interpreter_are_small_and_keep_ratios_of_columns(shapes: str) -> None:
    designed = design(parse_shapes([shapes]), ("x", "out", "a", "b"))
    small = [plan[0] for plan in designed.small_sizes()]
    assert designed.elements(small[0]) <= CPU_ELEMENTS < designed.elements(small[-1]) <= MOST_CPU_ELEMENTS
    for sizes in small:
        if "x_1" in sizes:
            assert sizes["x_1"] == 2 * sizes["out_1"]


def test_inputs_like_those_of_a_call() -> None:
    weight = ValueSeen("weight", "float16", (32000, 64), (64, 1), -3.0, 3.0)
    index = ValueSeen("index", "int64", (128,), (1,), 3, 31_950)
    swapped = ValueSeen("b", "float32", (64, 8), (1, 64), 0.0, 0.99)
    inputs = inputs_of(
        InputsSeen((weight, index, swapped, ValueSeen("eps", scalar=1e-5))), ("weight", "index", "b", "eps")
    )
    assert inputs.tensors["index"] == TensorShape((128,), "int64", low=0 + 3, high=32000)
    assert inputs.tensors["b"] == TensorShape((64, 8), "float32", transposed=True, low=0.0, high=1.0)
    assert inputs.scalars == {"eps": 1e-5}


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ("x=8x8:fp61", r"unknown dtype 'fp61' \(did you mean 'fp64'"),
        ("x=8xQ:fp16", "the size Q has no value"),
        ("x=0x8:fp16", "has the size '0'"),
        ("idx=8:int64", "is int64 without a range"),
        ("x=8x8:fp16:T", "unknown part 'T'"),
        ("eps=1e-6", "has no tensor"),
        ("x=8x8:fp16, x=8:fp16", "x occurs twice"),
        ("x=8:fp16, window(1)=4", "window\\(1\\) has no part 0 beside it"),
        ("x=8:fp16, window(00)=4, window(0)=4", "has no part 1 beside it"),
        ("x=8:fp16, window(0)=4, window=4", "window\\(0\\) and window: .* write all parts of window alike"),
        ("x=8:fp16, m[0]=8:fp16, m.bs=4", "write all parts of m alike"),
        (f"x=8:fp16, n={2**64}", "no plain value"),
        ("x=M:fp16, M=many", "M=many is a size"),
    ],
)
def test_wrong_shapes_are_one_line(shapes: str, words: str) -> None:
    with pytest.raises(BadKernelFile, match=words) as raised:
        parse_shapes([shapes])
    assert "\n" not in str(raised.value)


def test_line_of_the_form_is_read_like_a_shell_line() -> None:
    line = "rms.py:norm --shapes 'x=8x8:fp16, M=1' --shapes \"x=4:fp16\" --reference truth.py:f"
    assert parse_request(line) == KernelRequest("rms.py:norm", ("x=8x8:fp16, M=1", "x=4:fp16"), "truth.py:f")
    for wrong in ("", "rms.py --shapes", "rms.py --other x", "rms.py 'open"):
        with pytest.raises(BadKernelFile, match="write it as in a shell"):
            parse_request(wrong)
