"""
Notes which Triton binaries a process loads, and the time of each kernel on the GPU, for `wavedeck apply --e2e`.

Python 3.9 and newer; standard library only. An error in here never reaches the program. Each process writes a file of its own,
which `sessions/applying/witness.py` reads. The trace is torch's profiler: it sees each kernel of a graph's replay, which no hook
of Triton sees.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from wavedeck_capture_proxy import Finder  # type: ignore[import-not-found]  # PYTHONPATH holds its folder

open_file = open
ENVIRONMENT = "_WAVEDECK_WITNESS"
"""Names the folder; a file of `wavedeck apply --overlay` to run; and whether to trace, as `1`. One a line, or empty."""
WINDOW_S = 2.0
"""Length of a window of the trace. A killed process loses its last one."""
LAST_WAIT_S = 20.0
"""Longest wait for the first window, and for the last one."""


def start(environ: Mapping[str, str]) -> None:
    """Hook the import of Triton's compiler. Does nothing if the environment names no folder."""
    if ENVIRONMENT not in environ:
        return
    folder, overlay, is_traced = environ[ENVIRONMENT].split("\n")
    if overlay:
        with open_file(overlay, encoding="utf-8") as file:
            exec(file.read(), {})  # noqa: S102
    witness = Witness(folder, bool(is_traced))
    os.register_at_fork(after_in_child=lambda: witness.__init__(folder, bool(is_traced)))  # type: ignore[misc]
    sys.meta_path.insert(0, Finder("triton.compiler.compiler".__eq__, witness.wrap))


class Witness:
    """The binaries and kernels of this process."""

    def __init__(self, folder: str, is_traced: bool) -> None:
        self.file = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}.json")
        self.loads: list[tuple[str, str, str]] = []
        self.kernels: dict[str, list[float]] = {}
        self.traced_s = 0.0
        self.problem = ""
        self.waits_for_trace = is_traced
        self.is_tracing, self.stop = threading.Event(), threading.Event()
        self.no_capture = threading.Lock()
        """Held while a graph is captured: no window may begin or end then."""
        self.write()

    def write(self) -> None:
        """Write the file of this process."""
        data = {name: getattr(self, name) for name in ("loads", "kernels", "traced_s", "problem")}
        text, new = json.dumps(data), f"{self.file}.{threading.get_ident()}"
        with suppress(OSError):
            with open_file(new, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(new, self.file)

    def wrap(self, compiler: Any) -> None:
        """Note each binary that goes to the device. The trace begins before the first one runs."""
        load = compiler.CompiledKernel._init_handles
        if os.environ.get("TRITON_INTERPRET", "0") not in ("0", ""):
            self.problem = "Triton's interpreter ran, which loads no binary"
            self.write()

        def load_and_note(kernel: Any) -> Any:
            is_new = kernel.module is None and kernel.function is None
            if is_new and self.waits_for_trace:
                self.waits_for_trace = False
                with suppress(Exception):
                    self.begin_trace()
            result = load(kernel)
            if is_new:
                with suppress(Exception):
                    self.loads.append((kernel.name, kernel.src.fn.fn.__code__.co_filename, kernel.hash))
                    self.write()
            return result

        compiler.CompiledKernel._init_handles = load_and_note

    def begin_trace(self) -> None:
        """Start the windows; return when the first one is open. During a capture it opens after the capture."""
        from multiprocessing import util

        import torch

        is_traceable = torch.profiler.ProfilerActivity.CUDA in torch.profiler.supported_activities()
        if not is_traceable or not torch.cuda.is_available():
            self.problem = "no GPU that torch can trace"
            return
        is_capturing = torch.cuda.is_current_stream_capturing()
        if is_capturing:
            self.no_capture.acquire()
        graph: Any = torch.cuda.CUDAGraph
        begin, end = graph.capture_begin, graph.capture_end

        def capture_begin(*arguments: Any, **named: Any) -> None:
            self.no_capture.acquire(timeout=LAST_WAIT_S)
            try:
                begin(*arguments, **named)
            except BaseException:
                self.end_capture()
                raise

        def capture_end(*arguments: Any) -> None:
            try:
                end(*arguments)
            finally:
                self.end_capture()

        graph.capture_begin, graph.capture_end = capture_begin, capture_end
        device = torch.cuda.current_device()
        tracer = threading.Thread(target=self.trace, args=(device,), name="wavedeck-trace", daemon=True)
        tracer.start()

        def finish() -> None:
            self.stop.set()
            tracer.join(LAST_WAIT_S)

        util.Finalize(None, finish, exitpriority=0)  # also where a child of multiprocessing ends
        if not is_capturing:
            self.is_tracing.wait(LAST_WAIT_S)

    def end_capture(self) -> None:
        """Let windows begin and end again; return when the first one is open."""
        with suppress(RuntimeError):
            self.no_capture.release()
        self.is_tracing.wait(LAST_WAIT_S)

    def trace(self, device: int) -> None:
        """Add up the kernels of one window after the other, until the process ends."""
        try:
            import torch
            from torch.autograd import _disable_profiler  # type: ignore[attr-defined]
            from torch.autograd.profiler import profile

            while not self.stop.is_set():
                with self.no_capture:
                    window = profile(use_device="cuda", use_cpu=False, use_kineto=True)
                    window._prepare_trace()  # type: ignore[no-untyped-call]
                    window._start_trace()  # type: ignore[no-untyped-call]
                began = monotonic()
                self.is_tracing.set()
                self.stop.wait(WINDOW_S)
                with self.no_capture:
                    torch.cuda.synchronize(device)  # records of kernels that still run are lost
                    events = _disable_profiler().events()
                self.traced_s += monotonic() - began
                for event in events:
                    name = event.name()
                    if event.device_type().name in ("CUDA", "HIP") and not name.startswith(("Mem", "Copy")):
                        row = self.kernels.setdefault(name, [0, 0.0])
                        row[0] += 1
                        row[1] += event.duration_ns() / 1e3
                self.write()
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            self.write()
        finally:
            self.is_tracing.set()
