"""Kernels of serving, each judged from its file: a right one passes, and one that ignores what its inputs are is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.standalone.files import standalone_files
from sessions import Home
from suites import load_task
from tests.support.command_line import Shell
from tests.support.draws import drawn
from tests.tui.commands.keep.test_export import run_alone
from tui.diagnostics import ExitCode

pytestmark = pytest.mark.judge

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
SUM_OF_SEQUENCES = (
    HEAD
    + """\
@triton.jit
def sum_kernel(x, cu, out, rows, D: tl.constexpr):
    sequence, at = tl.program_id(0), tl.arange(0, D)
    first, last = tl.load(cu + sequence), tl.load(cu + sequence + 1)
    total = tl.zeros((D,), tl.float32)
    for row in range(first, last):
        total += tl.load(x + row * D + at).to(tl.float32)
    tl.store(out + sequence * D + at, total)


def sums(x, cu):
    out = torch.empty(len(cu) - 1, x.shape[1], device=x.device)
    sum_kernel[(len(cu) - 1,)](x, cu, out, len(x), D=x.shape[1])
    return out


def sums_ref(x, cu):
    return torch.stack([x[first:last].sum(0) for first, last in zip(cu[:-1].tolist(), cu[1:].tolist())])
"""
)
PAGED = (
    HEAD
    + """\
@triton.jit
def paged_kernel(cache, table, lens, out, columns, BLOCK: tl.constexpr, D: tl.constexpr):
    row, at, tokens = tl.program_id(0), tl.arange(0, D), tl.arange(0, BLOCK)
    length = tl.load(lens + row)
    total = tl.zeros((D,), tl.float32)
    for column in range(columns):  # also those of the tail, which are loaded and not used
        block = tl.load(table + row * columns + column)
        values = tl.load(cache + (block * BLOCK + tokens)[:, None] * D + at).to(tl.float32)
        total += tl.sum(tl.where((column * BLOCK + tokens < length)[:, None], values, 0.0), 0)
    tl.store(out + row * D + at, total)


def paged_sum(cache, table, lens):
    rows, columns = table.shape
    out = torch.empty(rows, cache.shape[2], device=cache.device)
    paged_kernel[(rows,)](cache, table, lens, out, columns, BLOCK=cache.shape[1], D=cache.shape[2])
    return out


def paged_sum_ref(cache, table, lens):
    rows = [cache[row.long()].flatten(0, 1)[:length] for row, length in zip(table, lens.tolist())]
    return torch.stack([row.sum(0) for row in rows])
"""
)
COPY = (
    HEAD
    + """\
@triton.jit
def copy_kernel(x, slots, cache, D: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, D)
    slot = tl.load(slots + row)
    if slot >= 0:
        tl.store(cache + slot * D + at, tl.load(x + row * D + at))


def copy(x, slots, cache):
    copy_kernel[(len(x),)](x, slots, cache, D=x.shape[1])


def copy_ref(x, slots, cache):
    cache.flatten(0, 1)[slots[slots >= 0]] = x[slots >= 0]
"""
)
PARTS = """\
from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass
class Slots:
    slots: torch.Tensor

    @property
    def count(self):
        return len(self.slots)


@triton.jit
def pair_kernel(k, v, slots, k_cache, v_cache, D: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, D)
    slot = tl.load(slots + row)
    if slot >= 0:
        tl.store(k_cache + slot * D + at, tl.load(k + row * D + at))
        tl.store(v_cache + slot * D + at, tl.load(v + row * D + at))


def write(kv, caches, where: Slots, mask=None):
    assert isinstance(kv, list) and isinstance(caches, tuple) and mask is None
    pair_kernel[(where.count,)](kv[0], kv[1], where.slots, *caches, D=kv[0].shape[1])


def write_ref(kv, caches, where):
    used = where.slots >= 0
    for new, cache in zip(kv, caches):
        cache.flatten(0, 1)[where.slots[used]] = new[used]
"""


IGNORED = (
    pytest.param(
        SUM_OF_SEQUENCES,
        "x=Tx16:fp16, cu=B+1:i32:cu_seqlens(T), T=40,96, B=4,8",
        "tl.load(cu + sequence), tl.load(cu + sequence + 1)",
        "sequence * (rows // tl.num_programs(0)), (sequence + 1) * (rows // tl.num_programs(0))",
        id="equal lengths",
    ),
    pytest.param(
        PAGED,
        "cache=Nx8x16:fp16, table=BxW:i32:block_table(N,lens,8), lens=B:i32:1..8*W+1, B=4,16, N=64, W=4",
        "column * BLOCK + tokens < length",
        "tokens < BLOCK",
        id="sums the tail",
    ),
    pytest.param(
        COPY,
        "x=Tx16:fp16, slots=T:i64:slots(N,8), cache=Nx8x16:fp16, T=8,64, N=32",
        "    if slot >= 0:\n    ",
        "    slot = tl.maximum(slot, 0)\n",
        id="no slot is slot 0",
    ),
    pytest.param(
        PARTS,
        "kv[0]=Tx16:fp16, kv[1]=Tx16:fp16, caches(0)=Nx8x16:fp16, caches(1)=Nx8x16:fp16, "
        "where.slots=T:i64:slots(N,8), mask=None, T=8,64, N=32",
        "tl.load(v + row * D + at)",
        "tl.load(k + row * D + at)",
        id="one item of a list twice",
    ),
)
"""A right kernel, its inputs, and a change of its text after which it ignores what one of them means."""


@pytest.mark.parametrize(("text", "shapes", "old", "new"), drawn(IGNORED, 2))
def test_a_kernel_that_ignores_its_inputs_is_wrong(
    shell: Shell, home: Home, text: str, shapes: str, old: str, new: str
) -> None:
    Path("kernel.py").write_text(text)
    done = shell("eval", "kernel.py", "--shapes", shapes, "-y", "--seed", "1")
    assert done.code == ExitCode.DONE, done.err + done.out
    (folder,) = (home.root / "own").iterdir()
    task = load_task(f"own/{folder.name}", registry=home.suites)
    assert old in text
    Path("wrong.py").write_text(text.replace(old, new))
    done = shell("eval", "wrong.py", "--task", task.id, "--seed", "1")
    assert done.code == ExitCode.NO
    assert "wrong: case" in done.out
    if "kv[0]" not in shapes:
        return  # one export shows the file that all kinds need, and the parts of arguments
    files = standalone_files(task, text)
    for name, content in files.items():
        Path(name).write_text(content)
    tested = run_alone(Path(), next(name for name in files if name.startswith("test_")))
    assert tested.stdout.count(": correct") == len(task.cases), tested.stderr


SEQUENCES = """
import torch
import triton
import triton.language as tl
from jinja2 import Template
from serve.device import block_of
from .sizes import COLUMNS


@triton.jit
def twice_kernel(x, out, starts, lengths, D: tl.constexpr, BLOCK: tl.constexpr):
    sequence, column = tl.program_id(0), tl.arange(0, D)
    first, length = tl.load(starts + sequence), tl.load(lengths + sequence)
    for row in range(0, length, BLOCK):
        at = row + tl.arange(0, BLOCK)
        place = (first + at)[:, None] * D + column
        tl.store(out + place, tl.load(x + place, mask=at[:, None] < length) * 2, mask=at[:, None] < length)


def twice(x, out, starts, lengths, window):
    assert window == [4, -1] and x.shape[1] == COLUMNS
    twice_kernel[(len(starts),)](x, out, starts, lengths, D=COLUMNS, BLOCK=block_of(x))
"""


def test_kernel_that_is_its_own_reference_imports_from_its_package(shell: Shell) -> None:
    files = {
        "serve/device.py": "from common import block_of\n",
        "common.py": "def block_of(x):\n    return 16\n",  # beside the package
        "jinja2/page.html": "",  # no package, but a folder with the name of an installed one
        "serve/ops/sizes.py": "COLUMNS = 16\n",
        "serve/ops/twice.py": SEQUENCES,
    }
    for name in ("serve/__init__.py", "serve/ops/__init__.py", *files):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(files.get(name, ""))
    shapes = (
        "x=Tx16:fp16, out=Tx16:fp16, starts=B:i32:starts(lengths), lengths=B:i32:lengths(T), "
        "window[1]=-1, window[0]=4, T=20,4000, B=6"
    )
    done = shell("eval", "serve/ops/twice.py", "--shapes", shapes, "-y", "--seed", "1")
    # Starts of one draw with lengths of another write beyond `out`, which ends the judge.
    assert done.code == ExitCode.DONE, done.err + done.out
    assert "the kernel itself says what is right" in done.err
