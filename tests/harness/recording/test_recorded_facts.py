"""Protects what a recorded task says of its calls: bytes that move, returned values, and the arguments that are passed."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from engine.prompting.facts import case_facts
from harness import DevicePool, target
from harness.recording.instruction_text import example_words
from harness.recording.tensor_words import tensor_words
from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import RecordedCall, RecordedOutput
from suites import Task, baseline_source, task_cost
from suites.public.task import ReferenceKind
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.scripts import HEADER, public_task, record

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

REFERENCE = (
    HEADER
    + """

@triton.jit
def sum_kernel(x_ptr, out_ptr, columns, stride_row, stride_column, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride_row + offsets * stride_column, mask=mask)  # GPUs give 0 beyond
    tl.store(out_ptr + row, tl.sum(x.to(tl.float32), 0))


@triton.jit
def lookup_kernel(table_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.load(index_ptr + tl.program_id(0))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + offsets, tl.load(table_ptr + row * BLOCK + offsets))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def total(x, workspace=None):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(x.shape[1]))
    return (out,)


def total_lookup(table, index):
    out = torch.empty(index.numel(), table.shape[1], device=table.device)
    lookup_kernel[(index.numel(),)](table, index, out, BLOCK=table.shape[1])
    return {"rows": out, "count": index.numel(), "index": index}


def total_add(x, y):
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x, x.numel(), BLOCK=64)


def total_row(cache, row, place):
    add_kernel[(1,)](row, row, cache[place], row.numel(), BLOCK=64)


@triton.jit
def product_kernel(x_ptr, out_ptr):
    square = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + square)
    tl.store(out_ptr + square, tl.dot(x, x))


def total_product(x):
    out = torch.empty_like(x)
    product_kernel[(1,)](x, out)
    return out


def total_copy(x):
    return total(x.half())
"""
)
TEST = """
import torch

result_gold = [
    total(torch.randn(64, 96, device="cuda"), torch.zeros(1000, device="cuda")),
    total(torch.randn(64, 96, device="cuda").half()),
    total(torch.randn(96, 64, device="cuda").t()),
    total_lookup(torch.randn(512, 32, device="cuda"), torch.randint(3, 500, (4,), device="cuda").sort().values),
    total_lookup(torch.randn(512, 32, device="cuda"), torch.tensor([7, 5], device="cuda")),
    total_add(torch.randn(128, device="cuda"), y=torch.randn(128, device="cuda")),
    total_row(torch.randn(64, 64, device="cuda"), torch.randn(64, device="cuda"), 3),
    total_copy(torch.randn(64, 96, device="cuda")),
]
x = torch.randn(128, device="cuda")
total_add(x, y=x)
total_product(torch.randn(16, 16, device="cuda"))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def recorded(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("recorded")
    public = public_task(REFERENCE, TEST, folder, name="total")
    return await record(pool, public)


def lines_of(task: Task) -> list[str]:
    return [line.partition(": ")[2] for line in task.instruction.splitlines() if line.startswith("- call-")]


async def test_calls_say_what_they_pass_return_and_change(recorded: Task) -> None:
    lines = lines_of(recorded)
    expected = [
        "`total(x, workspace)` with x: float32[64, 96], workspace: float32[1000]; returns a tuple of 1: float32[64]",
        "`total(x)` with x: float16[64, 96]; returns a tuple of 1: float16[64]",
        "`total(x)` with x: float32[64, 96] with strides (1, 64); returns a tuple of 1: float32[64]",
        "; returns a dict: {'rows': float32[4, 32], 'count': int 4, 'index': `index` itself}",
        "`total_lookup(table, index)` with table: float32[512, 32], index: int64[2] ([7, 5]); returns",
        "`total_add(x, y=y)` with x: float32[128], y: float32[128]; returns None; changes `x` in place",
        "`total_row(cache, row, 3)` with cache: float32[64, 64], row: float32[64]; returns None; changes `cache` in place",
        "`total_copy(x)` with x: float32[64, 96]; returns a tuple of 1: float16[64]",
        "`total_add(x, y=x)` with x: float32[128]; `x` is one tensor in 2 places; returns None; changes `x` in place",
        "`total_product(x)` with x: float32[16, 16]; returns float32[16, 16]; multiplies matrices",
    ]
    assert all(words in line for words, line in zip(expected, lines, strict=True))
    assert recorded.script is not None
    assert recorded.script.multiplies
    assert re.search(r"index: int64\[4\] \(\d+ to \d+\)", lines[3])
    assert "are those of two sets of inputs. Other sets may have others." in recorded.instruction


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([[4, 9, 1], [3, 3, 12]], "int64[3] (1 to 12)"),
        ([[4, 9, 1], [4, 9, 1]], "int64[3] ([4, 9, 1])"),
        ([[5] * 20, [5] * 20], "int64[20] (all 5)"),
        ([[0, 2, 2, 5, 7, 9], [0, 1, 3, 3, 8, 30]], "int64[6] (0 to 30; ascending)"),
        ([[3, 1, 0, 2, 5, 4], [5, 4, 3, 2, 1, 0]], "int64[6] (each of 0 to 5 once)"),
        (
            [[3, 1, 99, 2, 5, 4], [5, 4, 3, 2, 1, 0]],
            "int64[6] (0 to 99)",
        ),  # by accident, no value is there twice
        ([[*range(0, 60, 2)], [*range(59, 0, -2)]], "int64[30] (0 to 59; no value twice)"),
    ],
)
async def test_integers_are_told_by_what_two_sets_have_in_common(sets: list[list[int]], words: str) -> None:
    runs = [
        TensorSpec("int64", (len(values),), (1,), struct.pack(f"{len(values)}q", *values)) for values in sets
    ]
    assert tensor_words(runs) == words


async def test_moved_bytes_are_what_the_call_reads_returns_and_changes(recorded: Task) -> None:
    matrix, half = 4 * 64 * 96, 2 * 64 * 96
    moved = [task_cost(recorded, case.gpu, case.dtype).moved_bytes for case in recorded.cases]
    assert moved == [
        matrix + 4 * 64,  # the workspace is not read
        half + 2 * 64,
        matrix + 4 * 64,
        4 * 128 + 4 * 8 + 4 * 128,  # four rows of the table
        2 * 128 + 2 * 8 + 2 * 128,
        3 * 512,
        2 * 256,  # one row of the cache
        matrix + 2 * 64,  # read by the host's cast
        2 * 512,
        2 * 1024,
    ]


async def test_only_returned_outputs_are_certain(recorded: Task) -> None:
    """In place, a right kernel may find nothing to change."""
    certain = [task_cost(recorded, case.gpu, case.dtype).minimal_bytes for case in recorded.cases]
    assert certain == [256, 128, 256, 512, 256, 1, 1, 128, 1, 1024]


COUNTED = ("call-1", "call-2", "call-6")


async def test_the_estimate_counts_the_reads_of_a_reference(pool: DevicePool, recorded: Task) -> None:
    task = replace(recorded, cases=tuple(case for case in recorded.cases if case.name in COUNTED))
    evaluation = await judge_task(pool, baseline_source(recorded), task)
    excess = {row.case: row.excess for row in evaluation.traffic}
    assert excess == pytest.approx(dict.fromkeys(COUNTED, 1.0))
    assert case_facts(recorded, target("gfx942"))[0].needs == "0.0248 MB"


@pytest.mark.parametrize(
    ("reference", "arguments", "moved"),
    drawn(
        [
            ("x.sum(1)", "x, y", 4 * 64 * 32 + 4 * 64),
            ("torch.mm(x, y)", "x, y", 4 * (64 * 32 + 32 * 16 + 64 * 16)),
            ("x[:, :8] * 2", "x, y", 2 * 4 * 64 * 8),
            ("torch.zeros_like(x) + y[0, 0]", "x, y", 4 + 4 * 64 * 32),
            ("y[torch.tensor([1, 2])] * 1", "x, y", 0),  # a part of y: how much is not known
            ("x.argmax(1) * 0", "x, y", 0),  # always 0: a kernel may leave the reading out
        ],
        1,
    ),
)
async def test_moved_bytes_of_a_pytorch_reference(
    pool: DevicePool, tmp_path: Path, reference: str, arguments: str, moved: int
) -> None:
    public = public_task(
        f"import torch\n\n\ndef work(x, y):\n    return {reference}\n",
        "import torch\n"
        "x, y = torch.randn(64, 32, device='cuda'), torch.randn(32, 16, device='cuda')\n"
        f"result_gold = work({arguments})\n",
        tmp_path,
        name="work",
    )
    public = replace(public, reference_kind=ReferenceKind.TORCH)
    task = await record(pool, public)
    [case] = task.cases
    cost = task_cost(task, case.gpu, case.dtype)
    assert (cost.moved_bytes, cost.uncounted_products) == (moved, "mm" in reference)
    assert ("multiplies matrices" in task.instruction) is ("mm" in reference)


OPEN = (
    HEADER
    + """
LIMIT = 64 // 4
MODES = {"sum": 0}


@triton.jit
def double_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=offsets < count), mask=offsets < count)


def double(x: torch.Tensor, kind=tl.float32, *, limit: int = LIMIT):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return out, limit, float(x[0])
"""
)
OPEN_TEST = """
import torch

result_gold = [double(torch.randn(size, device="cuda")) for size in (40, 3, 40)]
result_gold.append(double(torch.ones(2, device="cuda")))
"""


async def test_what_a_hidden_reference_leaves_open_is_said(pool: DevicePool, tmp_path: Path) -> None:
    public = public_task(OPEN, OPEN_TEST, tmp_path, name="double")
    public = replace(public, instruction="Double up to MODES, by `double`.")
    task = await record(pool, public)
    assert "Constants of the module: `LIMIT = 64 // 4`, `MODES = {'sum': 0}`." in task.instruction
    # A number that depends on the values is named by its type.
    [equal, *_] = lines_of(task)
    assert equal == "`double(x)` with x: float32[40]; returns a tuple of 3: float32[40], int 16, float"
    assert "- call-1, call-3: `double(x)`" in task.instruction
    assert task.script is not None
    assert task.script.signatures == ("double(x, kind=tl.float32, *, limit: int=LIMIT)",)
    # The call with constants is smaller, but would give its results away.
    passed, returned = task.script.examples
    assert passed.startswith("call-2: `x = ")
    values = [json.loads(line.partition(" = ")[2].partition("`")[0]) for line in (passed, returned)]
    assert values[1] == pytest.approx([2 * value for value in values[0]], rel=1e-3)


async def test_example_shows_the_row_that_an_index_selects() -> None:
    def floats(*values: float, shape: tuple[int, ...]) -> TensorSpec:
        strides = (shape[-1], 1) if len(shape) == 2 else (1,)
        return TensorSpec("float32", shape, strides, struct.pack(f"{len(values)}f", *values))

    table = floats(*range(24), shape=(8, 3))
    index = TensorSpec("int64", (1,), (1,), struct.pack("q", 5))
    result = RecordedOutput("out", "result", floats(15, 16, 17, shape=(1, 3)))
    call = RecordedCall("f(table, index)", {"table": table, "index": index}, (result,))
    repeat = replace(
        call, inputs=call.inputs | {"index": TensorSpec("int64", (1,), (1,), struct.pack("q", 2))}
    )
    assert example_words([[call], [repeat]]) == (
        "call-1: `table[:2, :4] = [[0, 1, 2], [3, 4, 5]]`",
        "call-1: `index = [5]`",
        "call-1: `out = [[15, 16, 17]]` (returned)",
        "call-1: `table[5, :4] = [15, 16, 17]`",
    )
    assert example_words([[call], [call]]) == (), "constants would give the results away"


async def test_signs_that_a_factorization_leaves_open_are_said_to_be_the_reference_s(
    pool: DevicePool, tmp_path: Path
) -> None:
    reference = "import torch\n\n\ndef work(x, name):\n    return getattr(torch.linalg, name)(x)[0] * 2\n"
    test = "import torch\nx = torch.randn(8, 8, device='cuda')\n" + "".join(
        f"work(x @ x.t(), {name!r})\n" for name in ("svd", "eigh", "qr", "inv")
    )
    public = replace(public_task(reference, test, tmp_path, name="work"), reference_kind=ReferenceKind.TORCH)
    task = await record(pool, public)
    sentence = "Vectors that they return have no sign of their own: the signs of these calls are right, others are wrong."
    assert (
        f"The reference calls `torch.linalg.eigh`, `torch.linalg.qr`, `torch.linalg.svd`. {sentence}"
        in task.instruction
    )
