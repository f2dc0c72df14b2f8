"""Protects tasks whose cases are calls of a script: how calls are recorded, and how candidates are judged on them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from harness import DevicePool, Verdict
from harness.recording.references import Result
from harness.wire.errors import NotRecorded
from suites import Task, baseline_source
from suites.public.task import Part, ReferenceKind, TestForm
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.scripts import (
    PROGRAM,
    PYTEST,
    SCALE,
    TEST,
    judge_recorded,
    public_task,
    record,
)

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scale(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("recorded")
    public = public_task(SCALE, TEST, folder)
    return await record(pool, public)


def expressions(task: Task) -> list[str]:
    """Return the call of each line about calls."""
    return [
        line.partition("`")[2].partition("`")[0]
        for line in task.instruction.splitlines()
        if line.startswith("- call-")
    ]


async def test_different_calls_become_cases(scale: Task) -> None:
    assert "- call-1, call-2: `scale(x)`" in scale.instruction
    assert expressions(scale) == [
        "scale(x)",
        "scale(x, factor=0.5)",
        "scale_into(x, out, 4.0)",
        "scale_noise(50)",
        "scale_some(x, {'factor': 1.5})",
        "differentiable(x)",
        "Scaler(module_weight)(x)",
        "scale_kernel[1,](x_ptr, out_ptr, 64, 5.0, BLOCK=64)",
    ]
    assert [tuple(output.name for output in case.outputs) for case in scale.cases] == [
        ("out",),
        ("out",),
        ("out",),
        ("out",),
        ("out",),
        ("out_0",),
        ("out", "x_grad"),
        ("out",),
        ("out_ptr",),
    ]
    assert set(scale.in_place) == {"out", "out_ptr"}
    assert scale.allowed_operators == ("mul",)
    assert scale.script is not None
    assert "not judged: `result['count']` is a int" in scale.script.notes
    assert (
        "the gradients of `x` are judged too, from those of the results (`grad_0`: float32[10])"
        in scale.instruction
    )
    assert "draws random numbers: `randn([50])`, in this order" in scale.instruction
    assert "out: float32[100] (all 0 before the call)" in scale.instruction


@pytest.mark.parametrize("exam", drawn([False, True], 1))
async def test_the_reference_is_correct_in_every_call_and_in_the_exam(
    pool: DevicePool, scale: Task, *, exam: bool
) -> None:
    evaluation = await judge_task(pool, baseline_source(scale), scale, exam=exam)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)


VARIANTS = (
    ("* factor, mask=mask", "* (factor + 0.01), mask=mask", "call-1"),
    ("def scale(x, factor=2.0):", "def scale(x, factor=2.1):", "call-1"),
    (
        "    launch(x, out, factor)\n\n\ndef scale_noise",
        "    launch(x, out.clone(), factor)\n\n\ndef scale_noise",
        "call-4",
    ),
    ("return scale(x, 3.0)", "return scale(x + 0, 3.1)", "call-5"),
    ("return scale(grad.contiguous(), 2.0)", "return scale(grad.contiguous(), 1.0)", "call-7"),
    ('{"out": out, "count"', '{"result": out, "count"', "call-6"),
)
"""Right and wrong text, and the call that shows the difference."""


@pytest.mark.parametrize(("right", "wrong", "case"), drawn(VARIANTS, 2))
async def test_a_wrong_variant_is_refused(
    pool: DevicePool, scale: Task, right: str, wrong: str, case: str
) -> None:
    assert right in SCALE
    evaluation = await judge_task(pool, SCALE.replace(right, wrong), scale)
    assert evaluation.verdict in (Verdict.WRONG, Verdict.CALL_ERROR, Verdict.COMPILE_ERROR)
    assert evaluation.error is not None
    assert case in evaluation.error.message


async def test_causes_in_different_calls_are_all_named(pool: DevicePool, scale: Task) -> None:
    source = SCALE.replace("return scale(x, 3.0)", "return scale(x, 3.1)")
    source = source.replace('{"out": out, "count"', '{"result": out, "count"')
    source = source.replace(
        "    launch(x, out, factor)\n\n\ndef scale_noise",
        "    launch(x.to(torch.int8).float(), out, factor)\n\n\ndef scale_noise",
    )
    evaluation = await judge_task(pool, source, scale)
    assert evaluation.error.line is None, "the line is in the judge's own text"
    first, cast, formula, structure, cases = evaluation.error.message.split("\n")
    assert "expected a dict: {'out': float32[108]" in first
    assert cast.startswith("case call-4: output `out` is wrong")
    assert "a cast to an integer?" in cast
    assert formula.startswith("case call-5: output `out` is wrong")
    assert structure.startswith("case call-6: TypeError: expected a dict")
    assert cases.startswith("fails: 3 of 9 cases (call-4, call-5, call-6)"), cases


async def test_other_seeds_give_other_values_so_that_known_answers_are_refused(
    pool: DevicePool, tmp_path: Path
) -> None:
    """The script sets a seed; a candidate that repeats the script's own numbers meets other numbers."""
    test = "def test():\n    torch.manual_seed(0)\n    return scale(torch.randn(16, device='cuda'))\nresult_gold = test()\n"
    task = await record(pool, public_task(SCALE, test, tmp_path))
    known = SCALE.replace(
        "    launch(x, out, factor)\n    return out",
        "    generator = torch.Generator().manual_seed(0)\n"
        "    launch(torch.randn(16, generator=generator).to(x.device), out, factor)\n    return out",
    )
    evaluation = await judge_task(pool, known, task)
    assert evaluation.verdict is Verdict.WRONG


WITHOUT_CALLS = [
    ("result_gold = scale(torch.ones(4, device='cuda'), lambda: 1)\n", "is a builtins.function"),
    ("raise ValueError('no device')\nscale(1)\n", "the test stops early here: ValueError: no device"),
    ("import os\nscale_into\nos._exit(3)\n", "its test ended its process: exit code 3"),
]


@pytest.mark.parametrize(("test", "why"), drawn(WITHOUT_CALLS, 1))
async def test_a_task_without_a_call_that_can_be_judged_has_a_reason(
    pool: DevicePool, tmp_path: Path, test: str, why: str
) -> None:
    reference = SCALE.replace("launch(x, out, factor)\n    return out", "launch(x, out, 2.0)\n    return out")
    with pytest.raises(NotRecorded, match=why):
        await record(pool, public_task(reference, test, tmp_path))
    assert not (tmp_path / "scale").exists()


async def test_a_reference_that_stores_past_its_tensor_is_wrong_with_proof(
    pool: DevicePool, tmp_path: Path
) -> None:
    reference = SCALE.replace(
        "out = torch.empty_like(x)", "out = torch.empty(x.numel() - 1, device=x.device)"
    )
    test = "result_gold = scale(torch.randn(64, device='cuda'))\n"
    result = await judge_recorded(pool, public_task(reference, test, tmp_path))
    assert (result.result, result.kind) == (Result.WRONG, "out_of_bounds")
    assert result.calls == 1


async def test_pytest_runs_the_nodes_that_call_and_their_seeds_are_ours(
    pool: DevicePool, tmp_path: Path
) -> None:
    public = public_task(SCALE, PYTEST, tmp_path, form=TestForm.PYTEST)
    task = await record(pool, public)
    assert sorted(expressions(task)) == ["scale_into(x, out, 0.5)"] * 2 + ["scale_into(x, out, 3.0)"] * 2
    assert task.script is not None
    assert task.script.notes == ("4 of the test's 6 nodes are run",)
    evaluation = await judge_task(pool, baseline_source(task), task)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)


async def test_a_program_gets_its_arguments_and_ends_with_the_last_call_that_is_recorded(
    pool: DevicePool, tmp_path: Path
) -> None:
    public = public_task(SCALE, PROGRAM, tmp_path, form=TestForm.RUNNER)
    public = msgspec.structs.replace(
        public,
        reference=Part(tmp_path / "kernel.py", SCALE),
        test=Part(tmp_path / "harness.py", PROGRAM),
        arguments=("--correctness",),
    )
    task = await record(pool, public)
    assert len(task.cases) == 32
    assert task.script is not None
    assert task.script.notes == ("the test ends here after 32 call(s): there are more, or it takes too long",)


async def test_a_test_that_catches_its_exception_is_quoted(pool: DevicePool, tmp_path: Path) -> None:
    test = """
def run_correctness():
    try:
        scale(1)
    except Exception as error:
        return False, f"Shape 1: {error}"
"""
    public = msgspec.structs.replace(
        public_task(SCALE, test, tmp_path, form=TestForm.RUNNER),
        reference=Part(tmp_path / "kernel.py", SCALE),
        test=Part(tmp_path / "harness.py", test),
        runner="run_correctness",
    )
    with pytest.raises(NotRecorded, match=r"returns .False, .Shape 1: name .{1,2}scale.{1,2} is not defined"):
        await record(pool, public)


async def test_the_grid_of_an_autotuned_kernel_is_a_function_of_its_config(
    pool: DevicePool, tmp_path: Path
) -> None:
    reference = SCALE.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': size}) for size in (32, 64)], key=['count'])\n@triton.jit",
    )
    test = """
x, out = torch.randn(100, device="cuda"), torch.empty(100, device="cuda")
scale_kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100, 2.0)
"""
    task = await record(pool, public_task(reference, test, tmp_path))
    grid = "lambda meta: ((((100 + meta['BLOCK']) - 1) // meta['BLOCK']),)"
    assert expressions(task) == [f"scale_kernel[{grid}](x_ptr, out_ptr, 100, 2.0)"]
    evaluation = await judge_task(pool, baseline_source(task), task)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)


async def test_memory_that_the_test_allocates_never_holds_the_answer(
    pool: DevicePool, tmp_path: Path
) -> None:
    test = """
for again in range(3):
    torch.manual_seed(0)
    x = torch.randn(64, device="cuda")
    out = torch.empty(64, device="cuda")
    scale_into(x, out, 2.0)
    del out
"""
    task = await record(pool, public_task(SCALE, test, tmp_path))
    assert len(task.cases) == 1


@pytest.mark.parametrize(
    ("calls", "weak"),
    drawn(
        [
            ("double(torch.tensor([1.0, 2.0], device='cuda'))", True),
            ("double(torch.tensor([1.0, 2.0], device='cuda')), double(torch.randn(9, device='cuda'))", False),
        ],
        1,
    ),
)
async def test_a_call_with_drawn_values_makes_up_for_calls_with_constants(
    pool: DevicePool, tmp_path: Path, calls: str, *, weak: bool
) -> None:
    public = public_task(
        "def double(x):\n    return 2 * x\n", f"import torch\nresult_gold = {calls}\n", tmp_path
    )
    result = await judge_recorded(pool, replace(public, reference_kind=ReferenceKind.TORCH))
    assert result.result is Result.CORRECT
    assert ("the answer to other inputs" in result.weak) is weak


async def test_a_call_with_an_empty_tensor_needs_no_kernel(pool: DevicePool, tmp_path: Path) -> None:
    test = "import torch\nresult_gold = scale(torch.randn(9, device='cuda')), scale(torch.randn(0, device='cuda'))\n"
    reference = replace(public_task(SCALE, test, tmp_path), reference_kind=ReferenceKind.TORCH)
    task = await record(pool, reference)
    early = SCALE.replace(
        "out = torch.empty_like(x)\n",
        "out = torch.empty_like(x)\n    if x.numel() == 0:\n        return out\n",
    )
    evaluation = await judge_task(pool, early, task)
    assert (len(task.cases), evaluation.verdict) == (2, Verdict.CORRECT)


async def test_calls_that_need_a_gpu_are_unsupported_on_cpu(pool: DevicePool, scale: Task) -> None:
    task = replace(scale, cases=tuple(replace(case, only_gpu=True) for case in scale.cases[:1]))
    evaluation = await judge_task(pool, SCALE, task)
    assert evaluation.verdict is Verdict.UNSUPPORTED
    assert evaluation.error is not None
    assert "judged on a GPU only: call-1" in evaluation.error.message


ENDS = {
    "its own check fails": "if not torch.allclose(y, y + 1): return False, 'max diff = 1'",
    "a sixth of all values ends it": "if x[1] < -1: return False, 'other values'",
}


@pytest.mark.parametrize("end", drawn([*ENDS], 1))
async def test_a_test_that_ends_at_a_value_does_not_keep_its_later_calls_from_being_judged(
    pool: DevicePool, tmp_path: Path, end: str
) -> None:
    test = f"""
def test():
    torch.manual_seed(2)
    x = torch.randn(64, device="cuda")
    y = scale(x)
    {ENDS[end]}
    scale(x, factor=3.0)
test()
"""
    task = await record(pool, public_task(SCALE, test, tmp_path))
    assert expressions(task) == ["scale(x)", "scale(x, factor=3.0)"]
    evaluation = await judge_task(pool, SCALE, task)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
