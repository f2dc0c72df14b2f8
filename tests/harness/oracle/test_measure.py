"""Protects the measure of right errors: careful arithmetic is right in each dtype, and usual mistakes are wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest
import torch
from torch.nn import functional

from harness.cases.judged_case import JudgedCase
from harness.worker.oracle.answers import compare_output
from harness.worker.oracle.arithmetic import EPS, TF32_EPS, Careful, DrawsNumbers, exactly, widened
from harness.worker.oracle.comparison.compare import OutputComparison, compare
from harness.worker.oracle.comparison.measure import CALLS, LEVEL_EPS, ErrorMeasure, measure_output
from suites import load_suite
from suites.task import Tolerance

Function = Callable[..., torch.Tensor]
MEASURED = Tolerance(measured=True)


def measured(
    reference: Function, *inputs: torch.Tensor, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, ErrorMeasure]:
    """Return the exact values, and their measure for an output of `dtype`, which is that of the inputs by default."""
    with exactly():
        truth = reference(*map(widened, inputs))
    careful = Careful(torch.Generator().manual_seed(0), torch.finfo(inputs[0].dtype).eps)
    calls = [careful.call(partial(reference, *inputs)) for _ in range(CALLS)]
    return truth, measure_output(truth, calls, dtype or inputs[0].dtype)


def judged(reference: Function, answer: Function, *inputs: torch.Tensor) -> OutputComparison:
    """Compare an answer, computed in float32 and rounded once, with a reference."""
    truth, measure = measured(reference, *inputs)
    dtype = inputs[0].dtype
    return compare(
        answer(*(value.float() for value in inputs)).to(dtype),
        truth,
        case="case",
        output="out",
        dtype=dtype,
        tolerance=MEASURED,
        quantization=None,
        measure=measure,
    )


def softmax(x: torch.Tensor) -> torch.Tensor:
    return functional.softmax(x, -1)


def softmax_in_blocks(x: torch.Tensor) -> torch.Tensor:
    largest, total = torch.full_like(x[..., :1], -torch.inf), torch.zeros_like(x[..., :1])
    for block in x.split(64, -1):
        new = torch.maximum(largest, block.amax(-1, keepdim=True))
        total = total * (largest - new).exp() + (block - new).exp().sum(-1, keepdim=True)
        largest = new
    return (x - largest).exp() / total


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], eps=1e-5)


def layer_norm_by_hand(x: torch.Tensor, *, lost: int = 0, eps: float = 1e-5) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().sum(-1, keepdim=True) / (x.shape[-1] - lost)
    return centred * torch.rsqrt(variance + eps)


def layer_norm_by_squares(x: torch.Tensor) -> torch.Tensor:
    mean, square = x.mean(-1, keepdim=True), x.square().mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(square - mean.square() + 1e-5)


def gelu_by_hand(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))


def product_in_blocks(a: torch.Tensor, b: torch.Tensor, *, keep: torch.dtype = torch.float32) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 16):
        total = (total + a[:, start : start + 16] @ b[start : start + 16]).to(keep).float()
    return total


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v)


def attention_by_hand(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, keep: torch.dtype, scale: float = 1.0
) -> torch.Tensor:
    scores = q @ k.mT * scale * q.shape[-1] ** -0.5
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights.to(keep).float() @ v / weights.sum(-1, keepdim=True)


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


DTYPES = (torch.float32, torch.float16, torch.bfloat16)
ROWS, MATRICES, HEADS = ((32, 300),), ((32, 512), (512, 32)), ((2, 32, 64),) * 3


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_careful_arithmetic_is_right(dtype: torch.dtype) -> None:
    rows, matrices, heads = (drawn(*shapes, dtype=dtype) for shapes in (ROWS, MATRICES, HEADS))
    flash = partial(attention_by_hand, keep=dtype)
    for reference, answer, inputs in (
        (softmax, softmax_in_blocks, rows),
        (softmax, softmax, [rows[0][:1, :1]]),
        (layer_norm, layer_norm_by_hand, rows),
        (functional.gelu, gelu_by_hand, rows),
        (torch.matmul, product_in_blocks, matrices),
        (attention, flash, heads),
    ):
        assert judged(reference, answer, *inputs).mismatch is None, reference


def test_a_mean_that_is_rounded_is_right_in_rows_of_two_and_usual_mistakes_are_wrong() -> None:
    (rows,) = drawn((200, 2), dtype=torch.float32)
    far = rows + 300
    assert judged(layer_norm, layer_norm_by_hand, far).mismatch is None
    for mistake in (partial(layer_norm_by_hand, lost=1), layer_norm_by_squares):
        assert judged(layer_norm, mistake, far).mismatch is not None
    assert judged(layer_norm, partial(layer_norm_by_hand, eps=0.0), rows).mismatch is not None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mistakes_are_wrong(dtype: torch.dtype) -> None:
    rows, matrices, heads = (drawn(*shapes, dtype=dtype) for shapes in (ROWS, MATRICES, HEADS))
    small = [(rows[0].float() * 3e-3).to(dtype)]
    mistakes: list[tuple[Function, Function, list[torch.Tensor]]] = [
        (softmax, lambda x: 0.99 * softmax(x), rows),
        (layer_norm, partial(layer_norm_by_hand, lost=1), rows),
        (layer_norm, partial(layer_norm_by_hand, eps=0.0), small),
        (functional.gelu, partial(functional.gelu, approximate="tanh"), rows),
        (torch.matmul, lambda a, b: a[:, :-1] @ b[:-1], matrices),
        (attention, partial(attention_by_hand, keep=dtype, scale=1.01), heads),
    ]
    if dtype is torch.float16:
        mistakes.append((torch.matmul, partial(product_in_blocks, keep=torch.float16), matrices))
        mistakes.append((attention, partial(attention_by_hand, keep=torch.bfloat16), heads))
    if dtype is torch.float32:
        mistakes.append((torch.matmul, lambda a, b: a.bfloat16().float() @ b.bfloat16().float(), matrices))
    for reference, answer, inputs in mistakes:
        wrong = judged(reference, answer, *inputs).mismatch
        assert wrong is not None, reference
        assert "careful arithmetic" in wrong.off


def test_one_wrong_element_is_wrong_and_both_numbers_are_said() -> None:
    (rows,) = drawn((64, 300), dtype=torch.float16)

    def answer(x: torch.Tensor) -> torch.Tensor:
        right = softmax(x)
        right[3, 7] *= 1.02
        return right

    wrong = judged(softmax, answer, rows).mismatch
    assert wrong is not None
    assert wrong.index == (3, 7)
    assert wrong.wrong_share * rows.numel() == 1
    assert wrong.off.startswith("an element is 2")


def test_a_reference_may_convert_write_in_place_and_overflow() -> None:
    def reference(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape, dtype=torch.float32)
        out[:, ::2] = x.float()[:, ::2] * 2
        out[:, 1::2].add_(x[:, 1::2])
        return (out * x.pow(2)).to(x.dtype)

    (rows,) = drawn((8, 64), dtype=torch.float16)
    rows[0, 0] = 1000.0
    truth, measure = measured(reference, rows)
    assert truth.dtype is torch.float64
    assert torch.equal(truth[1:, ::2], 2 * rows[1:, ::2].double() ** 3)
    assert judged(reference, reference, rows).mismatch is None
    squares, measure = measured(lambda x: x.pow(2) / x, rows)
    assert bool(measure.open[0, 0])
    assert int(measure.open.sum()) == 1
    assert squares[0, 0] == 1000


def test_dropout_has_no_right_answer() -> None:
    with pytest.raises(DrawsNumbers), exactly():
        functional.dropout(torch.ones(8), 0.5)


def test_a_level_three_roundings_from_a_tie_may_differ_by_one_and_no_other() -> None:
    def levels(x: torch.Tensor, *, moved: float = 0.0) -> torch.Tensor:
        return ((x / (x.amax() / 127)) * (1 + moved)).round().to(torch.int8)

    largest = 126.3
    x = torch.tensor([largest, 63.5 * largest / 127 * (1 + 3 * EPS), 63.6, 20.2])
    with exactly():
        truth = levels(widened(x))
    answer = levels(x.double(), moved=-4 * EPS)
    assert (answer - truth).tolist() == [0, -1, 0, 0]
    moved_by: list[float] = []

    def measure(*, calls: int, least_eps: float = 0.0) -> ErrorMeasure:
        moved_by.append(least_eps)
        careful = Careful(torch.Generator().manual_seed(0), EPS, max(least_eps, EPS))
        return measure_output(truth, [careful.call(partial(levels, x)) for _ in range(calls)], torch.int8)

    (softmax_task,) = [task for task in load_suite("starter") if task.name == "softmax"]
    task = msgspec.structs.replace(softmax_task, tolerances={"float32": MEASURED})
    output = msgspec.structs.replace(task.outputs[0], dtype="int8", tolerances={})
    case = JudgedCase(next(case for case in task.open_cases if case.dtype == "float32"))
    judge = partial(compare_output, task, output, case, sizes={}, noise=lambda: None, measure=measure)
    assert judge(answer, truth).mismatch is None
    assert max(moved_by) == LEVEL_EPS
    for wrong in (
        answer + torch.tensor([0, 0, 1, 0], dtype=torch.int8),
        (x / (x.amax() / 127)).to(torch.int8),
    ):
        assert judge(wrong, truth).mismatch is not None


def test_an_allowance_makes_a_wrong_answer_weak() -> None:
    (softmax_task,) = [task for task in load_suite("starter") if task.name == "softmax"]
    case = next(case for case in softmax_task.open_cases if case.dtype == "float16")
    (rows,) = drawn(*ROWS, dtype=torch.float16)
    truth, measure = measured(softmax, rows)
    answer = (0.99 * softmax(rows.float())).half()

    def judge(tolerance: Tolerance) -> OutputComparison:
        task = msgspec.structs.replace(softmax_task, tolerances={"float16": tolerance})
        return compare_output(
            task,
            msgspec.structs.replace(task.outputs[0], tolerances={}),
            JudgedCase(case),
            answer,
            truth,
            sizes={},
            noise=lambda: None,
            measure=lambda **_: measure,
        )

    assert judge(MEASURED).mismatch is not None
    allowed = judge(Tolerance(measured=True, rtol=1.1e-2))
    assert allowed.mismatch is None
    assert allowed.weak.startswith(
        "the task allows rtol 0.011: 1 % off the exact values (rms); careful arithmetic is 0.0"
    )
    alike = judge(Tolerance(measured=True, cosine=0.9999))
    assert alike.weak.startswith(
        "the task allows cosine 0.9999: 1 % off the exact values (rms); careful arithmetic is 0.0"
    )
    answer = answer.flip(-1)
    assert judge(Tolerance(measured=True, cosine=0.9999)).mismatch is not None


def test_steps_of_integers_are_allowed_up_to_the_given_number() -> None:
    truth = torch.arange(-4, 4)
    _, measure = measured(lambda x: x.to(torch.int8), truth.float(), dtype=torch.int8)
    for off, is_right in ((1, True), (2, False)):
        compared = compare(
            (truth + off).to(torch.int8),
            truth,
            case="c",
            output="out",
            dtype=torch.int8,
            tolerance=Tolerance(measured=True, ulps=1),
            quantization=None,
            measure=measure,
        )
        assert (compared.mismatch is None) is is_right


def cut(value: torch.Tensor) -> torch.Tensor:
    """Return float32 values as a matrix unit takes them in TF32: without their last 13 bits."""
    return (value.contiguous().view(torch.int32) & -(1 << 13)).view(torch.float32)


@pytest.mark.parametrize("draw", [torch.randn, torch.rand], ids=["either_sign", "positive"])
@pytest.mark.parametrize("shape", [(1, 3, 64), (64, 64, 512)], ids=str)
def test_product_of_operands_that_are_cut_to_tf32_is_right_by_the_measure_of_tf32_alone(
    draw: Callable[..., torch.Tensor], shape: tuple[int, int, int]
) -> None:
    rows, columns, depth = shape
    a = draw(rows, depth, generator=torch.Generator().manual_seed(1))
    b = draw(columns, depth, generator=torch.Generator().manual_seed(2))
    truth = a.double() @ b.double().mT

    def is_right(got: torch.Tensor, eps: float) -> bool:
        careful = Careful(torch.Generator().manual_seed(0), EPS, max(eps, EPS))
        calls = [careful.call(lambda: a @ b.mT) for _ in range(CALLS)]
        measure = measure_output(truth, calls, torch.float32)
        everywhere = torch.ones_like(truth, dtype=torch.bool)
        return max(measure.shares(got.double() - truth, truth, everywhere).values()) <= 1

    assert not is_right(cut(a) @ cut(b).mT, eps=EPS)
    assert is_right(cut(a) @ cut(b).mT, eps=TF32_EPS)
    assert not is_right(1.005 * (cut(a) @ cut(b).mT), eps=TF32_EPS)
