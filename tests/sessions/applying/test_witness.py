"""The hook of `wavedeck apply --e2e` in a person's process: with a torch and a Triton that only count what is asked of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sessions.applying.witness import Load, ProcessReport, witnessed

FAKES = {
    "triton/__init__.py": "",
    "triton/compiler/__init__.py": "",
    "triton/compiler/compiler.py": """
class CompiledKernel:
    module = function = None
    name, hash = "k", "KEY"
    class src:
        class fn:
            fn = lambda: None
    def _init_handles(self):
        self.module = self.function = 1
""",
    "torch/__init__.py": "from . import autograd, cuda, profiler",
    "torch/profiler.py": """
class ProfilerActivity:
    CUDA = 1
def supported_activities():
    return {1}
""",
    "torch/cuda.py": """
import threading
capturing = False
def is_available(): return True
def is_current_stream_capturing(): return capturing
def current_device(): return 0
def synchronize(device): assert not capturing, "a window ended in a capture"
class CUDAGraph:
    def capture_begin(self):
        global capturing
        capturing = True
    def capture_end(self):
        global capturing
        capturing = False
""",
    "torch/autograd/__init__.py": """
ran = []
class Event:
    def __init__(self, name): self.text = name
    def name(self): return self.text
    def duration_ns(self): return 2000
    def device_type(self):
        class CUDA: name = "CUDA"
        return CUDA
class Result:
    def __init__(self, names): self.names = names
    def events(self): return [Event(name) for name in self.names]
def _disable_profiler():
    names, ran[:] = list(ran), []
    return Result(names)
""",
    "torch/autograd/profiler.py": """
from torch import cuda
class profile:
    def __init__(self, **options): pass
    def _prepare_trace(self): assert not cuda.capturing, "a window began in a capture"
    def _start_trace(self): pass
""",
}
PROGRAM = """
import os, signal, sys, time
import wavedeck_kernel_witness as witness
witness.WINDOW_S = 0.05
from torch import autograd, cuda
from triton.compiler.compiler import CompiledKernel
def launch():
    CompiledKernel()._init_handles()
    autograd.ran += ["k", "Memset", "other"]
"""
PROGRAMS = {
    "short": "launch()",
    "captures": "graph = cuda.CUDAGraph(); CompiledKernel()._init_handles(); graph.capture_begin(); time.sleep(0.3); "
    "graph.capture_end(); time.sleep(0.3); launch(); time.sleep(0.3)",
    "loads in a capture": "graph = cuda.CUDAGraph(); graph.capture_begin(); CompiledKernel()._init_handles(); "
    "time.sleep(0.3); graph.capture_end(); launch()",
    "forks": "os.wait() if os.fork() else launch()",
    "is killed": "launch(); time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_launch_is_counted_once_and_no_window_meets_a_capture(tmp_path: Path, name: str) -> None:
    for file, text in FAKES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    with witnessed(tmp_path, "", is_traced=True) as (environment, reports):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM + PROGRAMS[name]],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.stderr == ""
    assert [report.problem for report in reports if report.problem] == []
    counted = [report.kernels for report in reports if report.kernels]
    assert sum(kernels["k"][0] for kernels in counted) == 1
    assert all(kernels.keys() == {"k", "other"} for kernels in counted)
    assert {load for report in reports for load in report.loads} == {
        Load("k", str(tmp_path / "triton/compiler/compiler.py"), "KEY")
    }


def test_program_without_triton_says_nothing_and_is_not_disturbed(tmp_path: Path) -> None:
    with witnessed(None, "", is_traced=True) as (environment, reports):
        done = subprocess.run(
            [sys.executable, "-c", "print(1)"], env=os.environ | environment, capture_output=True, check=True
        )
    assert (done.stdout, done.stderr, reports) == (b"1\n", b"", [ProcessReport()])
