"""`wavedeck capture`: real programs with child processes, what is recorded of them, and what they do not notice."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import msgspec
import pytest

from suites.captures.capture import (
    CallSignature,
    Capture,
    IndexValues,
    TensorValue,
    read_capture,
)
from suites.captures.choice import choose_cases
from suites.captures.signature_texts import signature_text
from suites.own.shapes import parse_shapes
from suites.own.sizes import design
from tests.support.command_line import Shell
from tests.support.judge.gpu import needs_gpu
from tui.diagnostics import ExitCode

KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)

def scale(x, out, factor=2.0):
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), factor, BLOCK=64)
    return out

def gather(table, index):
    return table[index]
"""
BENCH = """
import multiprocessing
import torch
from kernels import scale

def work(times):
    for _ in range(times):
        x = torch.randn(100)
        scale(x, torch.empty_like(x))

work(3)
x = torch.randn(64)
scale(x, out=x)
scale(x, x, 2.0)
halves = torch.randn(2, 64)
assert torch.equal(scale(halves[0], halves[1]), halves[0] * 2)
child = multiprocessing.get_context("fork").Process(target=work, args=(5,))
child.start()
child.join()
"""
CHILDREN = """
import multiprocessing, subprocess, sys
from ops import add

def work(times):
    for _ in range(times):
        add(1)

if __name__ == "__main__":
    if sys.argv[1:]:
        work(int(sys.argv[1]))
    else:
        work(3)
        subprocess.run([sys.executable, __file__, "4"], check=True)
        child = multiprocessing.get_context("spawn").Process(target=work, args=(5,))
        child.start()
        child.join()
"""
PLAIN = """
def add(x, y=1):
    return x + y

def unused():
    pass

class Ops:
    @staticmethod
    def twice(x):
        return 2 * x

    def add(self, x):
        return x
"""


class Program:
    """Writes a program's files, and records it."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell, self.folder, self.out = shell, folder, folder / "calls"

    def write(self, **modules: str) -> None:
        """Write modules."""
        for name, text in modules.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def capture(self, target: str, *command: str) -> tuple[int, str]:
        """Record the program; return the exit code and the messages."""
        done = self.shell(
            *("capture", target, "-o", str(self.out)),
            "--",
            *(command or (sys.executable, str(self.folder / "bench.py"))),
        )
        return done.code, done.err

    @property
    def calls(self) -> Capture:
        """The capture."""
        return read_capture(self.out)


@pytest.fixture
def program(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return Program(shell, tmp_path)


@pytest.mark.judge
def test_calls_of_a_program_and_its_fork_are_counted_by_signature(program: Program) -> None:
    program.write(kernels=KERNELS, bench=BENCH)
    code, output = program.capture("kernels:scale_kernel")
    assert code == 0, output
    capture = program.calls
    assert capture.kind == "kernel"
    fresh = next(row for row in capture.signatures if not (row.same or row.shared))
    text = "x=100:float32, out=100:float32, n=100, factor=2.0, BLOCK=64, grid=(2)"
    assert signature_text(fresh) == text
    assert (fresh.calls, fresh.warm_up, fresh.timed) == (3 + 5, 2, 6), "a program and its fork"
    assert fresh.total_us > 0
    in_place, neighbours = (row for row in capture.signatures if row is not fresh)
    assert (in_place.calls, in_place.same, in_place.shared) == (2, (("x", "out"),), ())
    assert (neighbours.calls, neighbours.same, neighbours.shared) == (1, (), (("x", "out"),))
    assert neighbours.mean_us is None, "its only call is the warm-up"
    assert sorted(process.calls for process in capture.processes) == [5, 6]
    assert "3 signatures, 11 calls in 2 processes" in output
    assert "1 signature without a time" in output


def test_calls_of_new_interpreters_are_counted(program: Program) -> None:
    program.write(ops=PLAIN, bench=CHILDREN)
    code, output = program.capture("ops:add")
    assert code == 0, output
    (row,) = program.calls.signatures
    assert row.calls == 3 + 4 + 5
    assert sorted(process.calls for process in program.calls.processes) == [3, 4, 5]


def test_strides_and_patterns_in_recorded_values_become_kinds_of_inputs(program: Program) -> None:
    bench = """
import torch
from ops import attend
cu = torch.tensor([0, 3, 3, 9, 9], dtype=torch.int32)
lens = torch.tensor([3, 20, 17, 8], dtype=torch.int32)
table = torch.tensor([[5, 0, 0], [7, 2, 9], [7, 4, 1], [3, 0, 0]], dtype=torch.int32)
q, cache = torch.randn(9, 2, 8), torch.randn(16, 8, 2, 8)
order = torch.tensor([3, 1, 0, 2])
slots = torch.tensor([100, 3, 77, -1])
for last in (7, 99, 3, 5):
    rows, index, turned = torch.tensor([2, 0, 15, 2]), torch.tensor([2, last]), torch.randn(4, 100).T
    attend(q, cache, cu, cu, 6, table, lens, order, slots, rows, [q, q], (slots, cache), turned, index)
"""
    names = "q, cache, cu_q, cu_k, max_q, table, lens, order, slots, rows, pair, caches, turned, index"
    program.write(ops=f"def attend({names}):\n    return 0\n", bench=bench)
    assert program.capture("ops:attend")[0] == 0
    (row,) = program.calls.signatures
    text = signature_text(row)
    for words in (
        "cu_q=5:int32:cu_seqlens(9)", "cu_k=5:int32:cu_seqlens(9,cu_q)", "max_q=max(cu_q)",
        "table=4x3:int32:block_table(16,lens,8)", "lens=4:int32:3..21", "order=4:int64:permutation",
        "slots=4:int64:slots(16,8)", "rows=4:int64:0..16", "pair[0]=9x2x8:float32",
        "caches(0)=4:int64:slots(16,8)", "caches(1)=16x8x2x8:float32", "turned=100x4:float32:t",
        "index=2:int64:2..100",
    ):  # fmt: skip
        assert f"{words}," in f"{text},", text
    assert row.indices["index"] == IndexValues(2, 99, [2, 7]), "of the calls 1, 2 and 4; values of the first"
    assert (
        "turned=100x4:float32:t, index=2:int64:2..100"
        in program.shell("capture", "--show", str(program.out)).out
    )
    (inputs,) = parse_shapes([text])
    designed = design([inputs], names.split(", "))
    assert designed.tensors["cu_k"].shape == ("table_0+1",)
    assert all(designed.can_be(small[0]) for small in designed.small_sizes())


@pytest.mark.judge
@pytest.mark.soak
def test_calls_of_a_registered_operator_are_recorded(program: Program) -> None:
    bench = """
import torch
library = torch.library.Library("ours", "DEF")
library.define("scale(Tensor x, float factor=2.0) -> Tensor")
library.impl("scale", lambda x, factor=2.0: x * factor, "CompositeExplicitAutograd")
kept = torch.ops.ours.scale
for rows in (4, 4, 8):
    kept(torch.randn(rows, 2))
    torch.ops.ours.scale.default(torch.randn(rows, 2), factor=2.0)
    torch.ops.aten.sin(torch.randn(3))
"""
    program.write(bench=bench)
    code, output = program.capture("torch.ops.ours.scale")
    assert code == 0, output
    assert program.calls.target == "torch.ops.ours.scale"
    counts = {signature_text(row): row.calls for row in program.calls.signatures}
    assert counts == {"x=4x2:float32, factor=2.0": 4, "x=8x2:float32, factor=2.0": 2}


TORCH = '''
"""Stands for torch on a GPU whose work completes only when somebody waits for the whole program."""
import types

class Tensor:
    def __init__(self, address):
        self.address, self.shape, self.dtype, self.is_cuda, self.requires_grad = address, (8, 4), "torch.float16", True, False
        self.device = types.SimpleNamespace(type="cuda", index=0)
    def stride(self):
        return (4, 1)
    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.address)

class dtype: ...
class device: ...
now, done, capturing, compiling = 0.0, 0.0, False, False

class Event:
    def __init__(self, enable_timing=False): ...
    def record(self, stream):
        self.at = now
    def query(self):
        assert not capturing, "breaks the capture of a graph"
        return self.at <= done
    def elapsed_time(self, end):
        return end.at - self.at

compiler = types.SimpleNamespace(is_compiling=lambda: compiling)
cuda = types.SimpleNamespace(
    Event=Event,
    current_stream=lambda device: types.SimpleNamespace(device_index=device.index),
    is_current_stream_capturing=lambda: capturing,
    get_device_name=lambda device: "a GPU",
)
'''
GPU_BENCH = """
import torch
from ops import run
x, y = torch.Tensor(64), torch.Tensor(128)
for _ in range(1000):
    run(x, y, 1.0)
torch.capturing = True
for _ in range(3):
    run(x, y, 2.0)
torch.capturing = False
class FakeTensor(torch.Tensor): ...
run(FakeTensor(64), y, 3.0)
torch.done = torch.now
"""
GPU_OPS = """
import torch
def run(x, y, ms):
    torch.now += ms
"""


def test_gpu_times_come_from_events_that_nobody_waits_for(program: Program) -> None:
    program.write(torch=TORCH, ops=GPU_OPS, bench=GPU_BENCH)
    code, output = program.capture("ops:run")
    assert code == 0, output
    timed, captured = program.calls.signatures
    assert (timed.clock, timed.calls, timed.timed, timed.mean_us) == ("gpu", 1000, 999, 1000.0)
    assert (captured.calls, captured.graph_calls, captured.is_frequency_known) == (0, 3, False)
    assert "frequency unknown: 1 signature captured in a CUDA graph" in output
    assert "frequency unknown: a compiler traced ops:run;" in output
    assert program.calls.compiled == 1, "a compiler calls with tensors without values"
    assert program.calls.processes[0].device == "a GPU"
    program.write(
        bench="import torch, ops\ntorch.compiling = True\nops.run(torch.Tensor(64), torch.Tensor(128), 1.0)"
    )
    code, output = program.capture("ops:run")
    assert code == ExitCode.DONE, "the program's"
    assert one_line_of(output).startswith("wavedeck: ops:run was only traced by a compiler: how often")


@pytest.mark.gpu
@pytest.mark.judge
@needs_gpu
def test_on_a_gpu_events_agree_with_a_plain_clock_and_graphs_still_work(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    bench = """
import torch
from kernels import gather, scale
x = torch.randn(1 << 28, device="cuda")
out = torch.empty_like(x)
for _ in range(50):
    scale(x, out)
small = torch.randn(4096, device="cuda")
graph = torch.cuda.CUDAGraph()
scale(small, small)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    scale(small, small)
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
"""
    program.write(kernels=KERNELS, bench=bench)
    assert program.capture("kernels:scale")[0] == 0
    timed, captured = program.calls.signatures
    assert (timed.clock, timed.calls, timed.timed) == ("gpu", 50, 49)
    assert timed.mean_us is not None
    assert 100 < timed.mean_us < 20_000, "2 GiB are read and written"
    assert (captured.calls, captured.graph_calls, captured.is_frequency_known) == (1, 1, False)
    index = "torch.randint(0, 1000, (5000,), device='cuda')"
    program.write(
        bench=f"import torch\nfrom kernels import gather\nfor _ in range(8):\n    gather(torch.randn(1000, 4, device='cuda'), {index})"
    )
    assert program.capture("kernels:gather")[0] == 0
    seen = program.calls.signatures[0].indices["index"]
    assert 0 <= seen.low < seen.high < 1000
    assert seen.values is None, "5000 are not few"


@pytest.mark.parametrize(
    ("ending", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)]
)
def test_program_that_fails_keeps_its_exit_code_and_its_calls(
    program: Program, ending: str, code: int
) -> None:
    program.write(ops=PLAIN, bench=f"import os, signal, sys, ops\nops.add(1)\n{ending}")
    assert program.capture("ops:add")[0] == code
    assert program.calls.exit_code == code
    assert [(signature_text(row), row.calls) for row in program.calls.signatures] == [("x=1, y=1", 1)]


def test_hook_changes_nothing_that_the_program_can_see(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = program.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.own = __file__\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(own))
    program.write(
        ops=PLAIN,
        bench="""
import inspect, pickle, sys, sitecustomize
from ops import Ops, add
class Odd(list):
    def __len__(self):
        raise RuntimeError("no length")
    def __add__(self, other):
        return "added"
assert sys.own == sitecustomize.__file__
assert add(Odd(), 2) == "added"
assert str(inspect.signature(add)) == "(x, y=1)" and pickle.loads(pickle.dumps(add)) is add
assert Ops.twice(4) == Ops().twice(4) == 8 and Ops().add(1) == 1
try:
    add("a")
except TypeError as error:
    print(error, file=open(sys.argv[1], "w"))
add(1), add(1, 1), add(y=1, x=1), add(1.0), add(True)
""",
    )
    errors = program.folder / "errors"
    bench = (sys.executable, str(program.folder / "bench.py"), str(errors))
    code, output = program.capture("ops:add", *bench)
    assert code == 0, output
    assert "can only concatenate str" in errors.read_text()
    counts = {signature_text(row): row.calls for row in program.calls.signatures}
    assert counts == {"x=[], y=2": 1, "x=1, y=1": 3, "x='a', y=1": 1, "x=1.0, y=1": 1, "x=True, y=1": 1}
    assert program.capture("ops:Ops.twice", *bench)[0] == 0
    assert program.calls.signatures[0].calls == 2


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("ops:unused", "wavedeck: ops:unused was imported, but never called"),
        ("ops:ad", "wavedeck: ops has no 'ad' (did you mean 'add'?)"),
        ("ops:Ops", "wavedeck: ops:Ops is a class; name a method, as Ops.forward"),
        ("opps:add", "wavedeck: no process imported opps; check its name"),
        ("ops.add", "wavedeck: 'ops.add' names no function; write it as PACKAGE.MODULE:FUNCTION"),
    ],
)
def test_function_without_calls_is_one_line(program: Program, target: str, words: str) -> None:
    program.write(ops=PLAIN, bench="import ops\nops.add(1)")
    code, output = program.capture(target)
    assert code in (ExitCode.DONE, ExitCode.USAGE)
    assert one_line_of(output).startswith(words)
    assert not [path.name for path in program.folder.iterdir() if path.name.startswith("calls")]


def test_file_that_is_no_capture_is_not_replaced(program: Program) -> None:
    program.write(ops=PLAIN, bench="open('started', 'w')")
    program.out.write_text("precious", encoding="utf-8")
    code, output = program.capture("ops:add")
    assert code == ExitCode.USAGE
    assert "is no capture" in one_line_of(output)
    assert program.out.read_text() == "precious"
    assert not Path("started").exists()


def one_line_of(output: str) -> str:
    (line,) = output.splitlines()
    return line


def capture_of(times_us: dict[tuple[int, int], float], **changes: object) -> Capture:
    """Return a capture of calls on x of these shapes, with the time of all calls on each."""
    rows = tuple(
        CallSignature(
            arguments={"x": TensorValue(shape, (shape[1], 1), "float16", "cuda")},
            same=(), shared=(), clock="gpu", calls=10, warm_up=0, timed=10, graph_calls=0, total_us=time_us, indices={},
        )
        for shape, time_us in times_us.items()
    )  # fmt: skip
    whole = Capture("ops", "add", "function", "", ("x",), {}, (), rows, 0, 0, 0)
    return msgspec.structs.replace(whole, **changes)


def test_few_signatures_with_most_of_the_time_become_the_cases() -> None:
    choice = choose_cases(capture_of({(1, 64): 5.0, (2, 64): 600.0, (3, 64): 360.0, (4, 64): 35.0}))
    opened = [
        (case.signature.arguments["x"].shape[0], round(case.weight, 3))
        for case in choice.cases
        if not case.exam
    ]
    assert opened == [(2, 0.605), (3, 0.395)], "each stands for the nearest of the others, too"
    assert [case.signature.arguments["x"].shape[0] for case in choice.cases if case.exam] == [4]
    assert choice.exact == pytest.approx(0.96)
    assert choice.covered == pytest.approx(1.0)


@pytest.mark.parametrize("cases", [1, 4, 8])
def test_many_signatures_are_covered_by_cases_far_from_each_other(cases: int) -> None:
    capture = capture_of({(rows, 64): 10.0 for rows in range(1, 257)})
    choice = choose_cases(capture, cases=cases)
    opened = [case for case in choice.cases if not case.exam]
    exams = [case.signature for case in choice.cases if case.exam]
    assert len(opened) == cases
    assert sum(case.weight for case in opened) == pytest.approx(1.0)
    assert choice.covered >= 0.95
    assert choice.exact == pytest.approx(cases / 256)
    assert exams
    assert all(case.signature not in exams for case in opened)
    if cases > 1:
        rows = sorted(case.signature.arguments["x"].shape[0] for case in opened)
        assert rows[0] <= 4
        assert rows[-1] >= 128


def test_unknown_times_and_frequencies_are_no_weights() -> None:
    capture = capture_of({(1, 64): 10.0, (2, 64): 90.0})
    in_graph = msgspec.structs.replace(capture.signatures[1], graph_calls=1)
    once = msgspec.structs.replace(capture.signatures[1], timed=0, total_us=0.0)
    for unknown in (in_graph, once):
        choice = choose_cases(msgspec.structs.replace(capture, signatures=(capture.signatures[0], unknown)))
        assert [(case.weight, case.exam) for case in choice.cases] == [(1.0, False), (0.0, True)]
        with pytest.raises(ValueError, match="no call of ops:add has a known time"):
            choose_cases(msgspec.structs.replace(capture, signatures=(unknown,)))
