"""
Records the calls of one function in a person's own program, for `wavedeck capture`.

Python 3.9 and newer; standard library only. torch is used if the program imported it. An error in here never reaches the program.
No method of an argument is called: it could print, fail or wait.

A process writes what it saw to a file of its own in the folder of the capture: when it finds the function, at its first call,
about once a second while calls come, and at its end. `suites/captures/capture.py` merges these files.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import nullcontext
from functools import lru_cache
from os import getpid, replace, urandom  # by name, because the program may replace the attributes of modules
from threading import get_ident
from time import monotonic, perf_counter, sleep
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from wavedeck_capture_proxy import Finder, make_proxy  # type: ignore[import-not-found]
from wavedeck_capture_signatures import (  # type: ignore[import-not-found]  # PYTHONPATH holds its folder
    TracedCall,
    aliases,
    described,
    key_of,
)

open_file = open
ENVIRONMENT = "_WAVEDECK_CAPTURE"
"""Names the module, the function and the folder, one a line."""
LOOKUPS = "tuned_configurations"
"""The module of the target that means all loaders of vLLM, SGLang and aiter."""
MOST_SIGNATURES = 2000
"""Further signatures of a process are only counted."""
MOST_VALUES = 4096
"""Tensors that index are stored with their values if they have at most so many elements."""
INDICES = ("torch.int64", "torch.int32")
"""Dtypes of tensors that index."""
QUANTIZED = ("torch.int16", "torch.int8", "torch.uint8")
"""Dtypes of which only the range is stored: they may hold weights."""
PENDING = 32
"""Timings on a GPU that may wait before the hook looks which of them are complete."""
WRITE_EVERY_S = 1.0
WRITE_SHARE = 0.02
"""Largest share of the time that may go into writing."""
LAST_WAIT_S = 10.0
"""Longest wait for timings on a GPU when the process ends."""
OPERATORS = "torch.ops"
"""The module of registered operators: its functions are `NAMESPACE.NAME`."""
BOUND = (FunctionType, type(lru_cache(len)))
"""Functions that a class binds to its instances. Other descriptors make an object for each call."""
READ_CALLER = ("builtins", "inspect", "sys", "warnings")
"""Modules with functions that read the frame of their caller."""


def start(environ: Mapping[str, str]) -> None:
    """Hook the import of the module that the environment names; an imported module is wrapped now.

    Does nothing if the environment names none.
    """
    if ENVIRONMENT not in environ:
        return
    module, function, folder = environ[ENVIRONMENT].split("\n")
    # Without this file, the capture knows that Python's startup file did not reach the program.
    os.close(os.open(os.path.join(folder, "followed"), os.O_CREAT | os.O_WRONLY))
    if module == LOOKUPS:
        recorder = sys.modules["wavedeck_capture_lookups"].LookupRecorder(module, function, folder)
        sys.meta_path.insert(0, Finder(recorder.wants, recorder.wrap))
        return
    recorder = CallRecorder(module, function, folder)
    if module == OPERATORS:
        sys.meta_path.insert(0, Finder("torch._ops".__eq__, recorder.wrap))
    elif module in sys.modules:
        recorder.wrap(sys.modules[module])
    else:
        sys.meta_path.insert(0, Finder(module.__eq__, recorder.wrap))


def is_of_program(error: BaseException) -> bool:
    """Return True if a signal handler of the program raised the error: Python gives it the interrupted frame as an argument."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        is_of_torch = str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"
        for value in () if is_of_torch else list(frame.f_locals.values()):
            if FrameType in map(type, value if type(value) is tuple else (value,)):
                return True
        trace = trace.tb_next
    return False


def is_of_triton(value: Any) -> bool:
    """Return True for a kernel, and for a decorator of Triton around one."""
    return any(base.__module__.partition(".")[0] == "triton" for base in type(value).__mro__)


class Inside(threading.local):
    """Whether a thread runs the hook: calls in the hook are not recorded."""

    is_inside = False


class CallRow:
    """The calls of one signature."""

    def __init__(self, description: dict[str, Any], clock: str) -> None:
        self.description = description
        self.clock = clock
        self.calls = self.warm_up = self.timed = self.graph_calls = 0
        self.total_us = 0.0
        self.indices: dict[str, dict[str, Any]] = {}

    def add_time(self, duration_us: float) -> None:
        """Add the duration of a call."""
        self.timed += 1
        self.total_us += duration_us

    def add_index(self, path: str, low: int, high: int, values: Any) -> None:
        """Add the values of an integer tensor."""
        index = self.indices.setdefault(path, {"low": low, "high": high, "values": values})
        index["low"], index["high"] = min(index["low"], low), max(index["high"], high)

    def as_data(self) -> dict[str, Any]:
        """Return the row as plain data."""
        numbers = {
            name: getattr(self, name) for name in ("calls", "warm_up", "timed", "graph_calls", "total_us")
        }
        return {**self.description, "clock": self.clock, **numbers, "indices": self.indices}


class CallRecorder:
    """Wraps the function, and keeps what its calls were in this process."""

    def __init__(self, module: str, function: str, folder: str) -> None:
        self.module, self.function, self.folder = module, function, folder
        self.kind, self.file, self.problem = "function", "", ""
        self.parameters: list[str] = []
        self.defaults: dict[str, Hashable] = {}
        self.is_found = False
        self.inside = Inside()
        self.reset()
        os.register_at_fork(after_in_child=self.reset)
        atexit.register(self.finish)

    def reset(self) -> None:
        """Begin anew, as a process that has recorded nothing."""
        self.lock = threading.RLock()
        self.rows: dict[Hashable, CallRow] = {}
        self.pending: deque[tuple[Any, Callable[[], None]]] = deque()
        self.spare_events: defaultdict[int, list[Any]] = defaultdict(list)
        self.others = self.missed = self.compiled = 0
        self.error = ""
        self.device = ""
        self.has_begun = False
        self.next_write = 0.0
        self.part = os.path.join(self.folder, f"part-{getpid()}-{urandom(4).hex()}.json")

    # The function

    def wrap(self, module: ModuleType) -> None:
        """Replace the function in its module by one that records its calls."""
        from json import dumps

        self.dumps = dumps
        try:
            self.file = str(getattr(module, "__file__", None) or "")
            self.problem = self._wrap_operator(module) if self.module == OPERATORS else self._wrap(module)
            self.is_found = not self.problem
        except Exception as error:
            if is_of_program(error):
                raise
            self.problem = f"{self.module}:{self.function} cannot be recorded: {error!r}"
        self.guarded(self._write)
        if self.problem:  # a person can then stop a long program
            self.guarded(self._write_file, os.path.join(self.folder, "problem"), self.problem)

    def _wrap(self, module: ModuleType) -> str:
        """Return why the function cannot be recorded; nothing if it is replaced."""
        import inspect
        from difflib import get_close_matches

        target = f"{self.module}:{self.function}"
        owner: Any = module
        *owners, name = self.function.split(".")
        for part in owners:
            owner = getattr(owner, part, None)
        if not hasattr(owner, name):
            close = get_close_matches(name, dir(owner), n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            return f"{self.module} has no {self.function!r}{hint}"
        if self.module in READ_CALLER:
            return f"{target} cannot be recorded: functions of {self.module} read the frame of their caller"
        plain: Any = getattr(owner, name)
        if inspect.isclass(plain):
            return f"{target} is a class; name a method, as {self.function}.forward"
        only: Any = None
        stored = inspect.getattr_static(owner, name, plain)
        if is_of_triton(plain):
            self.kind, owner, name, stored = "kernel", plain, "run", plain.run
            while is_of_triton(plain):  # Triton's decorators, around each other
                plain = plain.fn
        elif type(plain) is MethodType and plain.__self__ is owner and not inspect.isclass(owner):
            only, owner = owner, type(owner)
        elif isinstance(inspect.getattr_static(type(plain), "__call__", None), FunctionType):
            only, owner, name = plain, type(plain), "__call__"
        if only is not None:  # its class gets the proxy, so that the object stays as it is
            stored = inspect.getattr_static(owner, name)
        function = stored.__func__ if isinstance(stored, (classmethod, staticmethod)) else stored
        if inspect.isclass(owner) and hasattr(type(function), "__get__") and not isinstance(function, BOUND):
            return f"{target} is a {type(stored).__name__}; name the function that it calls"
        if (
            not callable(function)
            or inspect.iscoroutinefunction(function)
            or inspect.isgeneratorfunction(function)
        ):
            return f"{target} is no plain function: {type(stored).__name__}"
        is_bound = self.kind == "kernel" or only is not None
        self._read_signature(inspect, plain if is_bound else function)
        recorded = self.recording(function, None if only is None else lambda first: first is only)
        setattr(owner, name, recorded if function is stored else type(stored)(recorded))
        return ""

    def _wrap_operator(self, operators: Any) -> str:
        """Record the calls of an operator that a library registers later; Python calls it by its packet or an overload."""
        wanted = self.function.replace(".", "::", 1)
        self.kind = "operator"
        for kind, name_of in (
            (operators.OpOverloadPacket, lambda operator: operator._qualified_op_name),
            (operators.OpOverload, lambda operator: operator._schema.name),
        ):

            def selects(operator: Any, name_of: Any = name_of) -> bool:
                is_wanted: bool = name_of(operator) == wanted
                if is_wanted and not self.parameters:
                    self._read_schema(operator)
                return is_wanted

            kind.__call__ = self.recording(kind.__call__, selects)
        return ""

    def _read_schema(self, operator: Any) -> None:
        """Read the parameters and defaults of an operator of torch; of a packet of overloads those of the first."""
        overload = operator if hasattr(operator, "_schema") else getattr(operator, operator.overloads()[0])
        arguments = overload._schema.arguments
        self.parameters = [argument.name for argument in arguments]
        self.defaults = {
            argument.name: key_of(argument.default_value, argument.name, [], sys.modules.get("torch"))
            for argument in arguments
            if argument.has_default_value()
        }

    def _read_signature(self, inspect: Any, function: Any) -> None:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):  # a function in C
            return
        named = [
            parameter
            for parameter in parameters
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        self.parameters = [parameter.name for parameter in named]
        torch = sys.modules.get("torch")
        self.defaults = {
            parameter.name: key_of(parameter.default, parameter.name, [], torch)
            for parameter in named
            if parameter.default is not parameter.empty
        }

    def recording(self, function: Callable[..., Any], selects: Callable[[Any], bool] | None = None) -> Any:
        """Return a proxy that records the calls of a function; of a method those on selected objects, without the object."""
        compiler: Any = getattr(sys.modules.get("torch"), "compiler", None)
        is_compiling = getattr(compiler, "is_compiling", bool)

        def note_compiled() -> None:
            self.compiled = self.compiled or 1

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if is_compiling():
                note_compiled()
                return None
            return self.guarded(self._begin, args, kwargs, selects)

        return make_proxy(function, begin, self.end, note_compiled)

    # A call

    def guarded(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return `work(*arguments)`. An error in it is only counted; an error that the program raised in between goes on."""
        if self.inside.is_inside:
            return None
        self.inside.is_inside = True
        try:
            torch: Any = sys.modules.get("torch")
            # The program's modes and subclasses do not see what the hook does with a tensor.
            with getattr(getattr(torch, "_C", None), "DisableTorchFunction", nullcontext)():
                return work(*arguments)
        except TracedCall:
            self.compiled += 1
        except Exception as error:
            if is_of_program(error):
                raise
            self.missed += 1
            self.error = self.error or f"{type(error).__name__}: {error}"
        finally:
            self.inside.is_inside = False
        return None

    def _begin(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], selects: Callable[[Any], bool] | None
    ) -> Any:
        """Return the row of a call and its start; `None` if its duration is not wanted."""
        if selects is not None:
            if not args or not selects(args[0]):
                return None
            args = args[1:]
        if self.kind == "kernel" and kwargs.get("warmup") is True:
            return None
        torch: Any = sys.modules.get("torch")
        tensors: list[tuple[str, Any]] = []
        arguments = self._arguments(args, kwargs, tensors, torch)
        key = (arguments, *aliases(tensors))
        device = None
        for _, tensor in tensors:
            if tensor.is_cuda:
                device = tensor.device
                break
        is_capturing = device is not None and torch.cuda.is_current_stream_capturing()
        with self.lock:
            row = self.rows.get(key)
            if row is None:
                if len(self.rows) >= MOST_SIGNATURES:
                    self.others += 1
                    return None
                row = self.rows[key] = CallRow(described(key), "wall" if device is None else "gpu")
            if is_capturing:
                row.graph_calls += 1
                return None
            row.calls += 1
            if row.calls == 1:
                row.warm_up += 1
                self._begin_process(torch, device)
            if row.calls & (row.calls - 1) == 0:  # the calls 1, 2, 4, 8, ...
                self._read_indices(row, tensors, torch)
            if row.calls == 1:
                return None
        if device is None:
            return row, perf_counter(), None
        stream = torch.cuda.current_stream(device)
        opened = self._event(stream)
        opened.record(stream)
        return row, opened, stream

    def _arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[tuple[str, Any]], torch: Any
    ) -> Hashable:
        """Return what the arguments of a call are, in the order of the parameters, and add the tensors to `tensors`."""
        names = self.parameters
        if not kwargs and len(args) <= len(names):
            pairs = [(name, key_of(value, name, tensors, torch)) for name, value in zip(names, args)]
            pairs += [(name, self.defaults[name]) for name in names[len(args) :] if name in self.defaults]
            return tuple(pairs)
        values = dict(zip(names, args))
        for place in range(len(names), len(args)):
            values[f"args[{place}]"] = args[place]
        values.update(kwargs)
        if self.kind == "kernel":
            values.pop("warmup", None)
        keys = {name: key_of(value, name, tensors, torch) for name, value in values.items()}
        pairs = [(name, keys.pop(name, self.defaults.get(name))) for name in names]
        return (
            *(pair for pair in pairs if pair[1] is not None),
            *sorted(keys.items(), key=lambda pair: pair[0]),
        )

    def end(self, call: Any, _result: Any) -> None:
        """Add the duration of a call to its row."""
        if call is not None:
            ended = perf_counter()
            self.guarded(self._end, ended, *call)

    def _end(self, ended: float, row: CallRow, opened: Any, stream: Any) -> None:
        if stream is None:
            with self.lock:
                row.add_time((ended - opened) * 1e6)
        else:
            closed = self._event(stream)
            closed.record(stream)

            def resolve() -> None:
                row.add_time(opened.elapsed_time(closed) * 1e3)
                self.spare_events[stream.device_index] += (opened, closed)

            self.pending.append((closed, resolve))
            if len(self.pending) >= PENDING:
                self._resolve()
        if monotonic() >= self.next_write:
            self._write()

    def _event(self, stream: Any) -> Any:
        spare = self.spare_events[stream.device_index]
        return spare.pop() if spare else sys.modules["torch"].cuda.Event(enable_timing=True)

    def _resolve(self) -> None:
        """Take the timings and values that the GPU has completed, without waiting for it."""
        with self.lock:
            while self.pending and self.pending[0][0].query():
                self.pending.popleft()[1]()

    def _read_indices(self, row: CallRow, tensors: list[tuple[str, Any]], torch: Any) -> None:
        """Read the range of integer tensors, and few values of those that index. A GPU copies them on its own."""
        if getattr(getattr(torch, "_C", None), "_len_torch_dispatch_stack", int)():
            return  # a mode of the program would see the reading
        for path, tensor in tensors:
            dtype = str(tensor.dtype)
            if dtype not in INDICES + QUANTIZED or not tensor.numel():
                continue
            seen = tensor.detach()
            is_small = dtype in INDICES and tensor.numel() <= MOST_VALUES
            if not is_small:
                seen = torch.stack(seen.aminmax())
            copy = seen.to("cpu", non_blocking=True) if tensor.is_cuda else seen

            def add(path: str = path, copy: Any = copy, is_small: bool = is_small) -> None:
                values = copy.flatten().tolist()
                row.add_index(path, min(values), max(values), copy.tolist() if is_small else None)

            if tensor.is_cuda:
                copied = torch.cuda.Event()
                copied.record(torch.cuda.current_stream(tensor.device))
                self.pending.append((copied, add))
            else:
                add()

    # The file of the process

    def _begin_process(self, torch: Any, device: Any) -> None:
        if device is not None and not self.device:
            self.device = torch.cuda.get_device_name(device)
        if not self.has_begun:
            self.has_begun = True
            util = sys.modules.get("multiprocessing.util")
            if util is not None:  # a forked worker of multiprocessing calls no other function at its end
                util.Finalize(None, self.finish, exitpriority=0)
            self._write()

    def finish(self) -> None:
        """Write the file of a process that ends, with the timings that a GPU still owes."""
        if self.is_found:
            self.guarded(self._finish)
            self.guarded(self._write)

    def _finish(self) -> None:
        """Wait for the times of the last calls on GPUs, at most `LAST_WAIT_S`."""
        limit = monotonic() + LAST_WAIT_S
        self._resolve()
        while self.pending and monotonic() < limit:
            sleep(0.01)
            self._resolve()

    def _write(self) -> None:
        """Write the file of this process."""
        begun = monotonic()
        # A damaged disk or a deleted folder costs no time with each call.
        self.next_write = begun + WRITE_EVERY_S
        with self.lock:
            text = self.dumps(self._data(), ensure_ascii=False)
        self._write_file(self.part, text)
        ended = monotonic()
        self.next_write = ended + max(WRITE_EVERY_S, (ended - begun) / WRITE_SHARE)

    def _write_file(self, path: str, text: str) -> None:
        """Write a file, whole or not at all; `?` for a lone surrogate, which is no text."""
        temporary = f"{path}.{get_ident()}"
        with open_file(temporary, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        replace(temporary, path)

    def _data(self) -> dict[str, Any]:
        package = self.module.partition(".")[0]
        versions = {"python": sys.version.split()[0]}
        for name in ("torch", "triton", package):
            version = getattr(sys.modules.get(name), "__version__", None)
            if version is not None:
                versions[name] = str(version)
        torch_version = getattr(sys.modules.get("torch"), "version", None)
        for name in ("cuda", "hip"):
            if getattr(torch_version, name, None):
                versions[name] = str(getattr(torch_version, name))
        process = {
            "pid": getpid(),
            "host": os.uname().nodename,
            "rank": os.environ.get("RANK", ""),
            "device": self.device,
            "calls": sum(row.calls for row in self.rows.values()) + self.others,
        }
        return {
            "module": self.module,
            "function": self.function,
            "kind": self.kind,
            "file": self.file,
            "parameters": self.parameters,
            "problem": self.problem,
            "versions": versions,
            "processes": [process],
            "signatures": [row.as_data() for row in self.rows.values()],
            "others": self.others,
            "compiled": self.compiled,
            "missed": self.missed,
            "error": self.error,
        }
