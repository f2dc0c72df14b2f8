"""
Records the calls of one function in a person's own program, for `wavedeck capture`.

Python 3.9 and newer; standard library only. torch is used if the program imported it. An error in here never reaches the program.

A process writes what it saw to a file of its own in the folder of the capture: when it finds the function, at its first call,
about once a second while calls come, and at its end. `suites/captures/capture.py` merges these files.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from wavedeck_capture_signatures import (  # type: ignore[import-not-found]  # PYTHONPATH holds its folder
    TracedCall,
    aliases,
    described,
    key_of,
)

ENVIRONMENT = "_WAVEDECK_CAPTURE"
"""Names the module, the function and the folder, one a line."""
MOST_SIGNATURES = 2000
"""Further signatures of a process are only counted."""
MOST_VALUES = 256
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


def start(environ: Mapping[str, str]) -> None:
    """Hook the import of the module that the environment names."""
    if ENVIRONMENT not in environ:
        return
    module, function, folder = environ[ENVIRONMENT].split("\n")
    # Without this file, the capture knows that Python's startup file did not reach the program.
    os.close(os.open(os.path.join(folder, "followed"), os.O_CREAT | os.O_WRONLY))
    recorder = Recorder(module, function, folder)
    if module == OPERATORS:
        sys.meta_path.insert(0, Finder("torch._ops", recorder.wrap))
    elif module in sys.modules:
        recorder.wrap(sys.modules[module])
    else:
        sys.meta_path.insert(0, Finder(module, recorder.wrap))


class Finder:
    """Finds one module as the other finders do, and calls `executed` with it after its execution."""

    def __init__(self, module: str, executed: Callable[[ModuleType], None]) -> None:
        self.module = module
        self.executed = executed
        self.is_searching = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the module's spec with a loader that calls `executed`; `None` for other modules."""
        if name != self.module or self.is_searching:
            return None
        self.is_searching = True  # another hook may ask all finders in turn
        try:
            finders = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
            specs = (find(name, path, target) for find in finders if find is not None)
            spec = next((spec for spec in specs if spec is not None), None)
        finally:
            self.is_searching = False
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if spec is not None and execute is not None:

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.executed(module)

            try:
                spec.loader.exec_module = exec_module
            except (AttributeError, TypeError):
                sys.stderr.write(f"wavedeck capture: the import of {name} cannot be hooked\n")
        return spec


class Row:
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


class Recorder:
    """Wraps the function, and keeps what its calls were in this process."""

    def __init__(self, module: str, function: str, folder: str) -> None:
        self.module, self.function, self.folder = module, function, folder
        self.kind, self.file, self.problem = "function", "", ""
        self.parameters: list[str] = []
        self.defaults: dict[str, Hashable] = {}
        self.is_found = False
        self.reset()
        os.register_at_fork(after_in_child=self.reset)
        atexit.register(self.finish)

    def reset(self) -> None:
        """Begin anew, as a process that has recorded nothing."""
        self.lock = threading.RLock()
        self.rows: dict[Hashable, Row] = {}
        self.pending: deque[tuple[Any, Callable[[], None]]] = deque()
        self.spare_events: defaultdict[int, list[Any]] = defaultdict(list)
        self.others = self.missed = self.compiled = 0
        self.error = ""
        self.device = ""
        self.has_begun = False
        self.next_write = 0.0
        self.part = os.path.join(self.folder, f"part-{os.getpid()}-{os.urandom(4).hex()}.json")

    # The function

    def wrap(self, module: ModuleType) -> None:
        """Replace the function in its module by one that records its calls."""
        try:
            self.file = getattr(module, "__file__", None) or ""
            self.problem = self._wrap_operator(module) if self.module == OPERATORS else self._wrap(module)
            self.is_found = not self.problem
        except Exception as error:
            self.problem = f"{self.module}:{self.function} cannot be recorded: {error!r}"
        self.write()
        if self.problem:
            self._say_problem()

    def _say_problem(self) -> None:
        """Print the problem at once, so that a person can stop a long program; one process prints it for all."""
        try:
            os.close(os.open(os.path.join(self.folder, "said"), os.O_CREAT | os.O_EXCL))
        except OSError:
            return
        sys.stderr.write(f"wavedeck capture: {self.problem}\n")

    def _wrap(self, module: ModuleType) -> str:
        """Return why the function cannot be recorded; nothing if it is replaced."""
        import inspect
        from difflib import get_close_matches

        owner: Any = module
        *owners, name = self.function.split(".")
        for part in owners:
            owner = getattr(owner, part, None)
        if not hasattr(owner, name):
            functions = [member for member in dir(owner) if callable(getattr(owner, member, None))]
            close = get_close_matches(name, functions, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            return f"{self.module} has no {self.function!r}{hint}"
        stored = vars(owner).get(name) if hasattr(owner, "__dict__") else None
        value = getattr(owner, name)
        plain: Any = value
        while hasattr(plain, "fn") and hasattr(plain, "run"):  # Triton's decorators, around each other
            self.kind = "kernel"
            plain = plain.fn
        if inspect.isclass(value):
            return f"{self.module}:{self.function} is a class; name a method, as {self.function}.forward"
        if not callable(value) or inspect.iscoroutinefunction(plain) or inspect.isgeneratorfunction(plain):
            return f"{self.module}:{self.function} is no plain function: {type(value).__name__}"
        self._read_signature(inspect, stored.__func__ if isinstance(stored, classmethod) else plain)
        if self.kind == "kernel":
            value.run = self.recording(value.run)
        elif isinstance(stored, classmethod):
            setattr(owner, name, classmethod(self.recording(stored.__func__)))
        elif inspect.isclass(owner) and not inspect.isfunction(stored):
            setattr(owner, name, staticmethod(self.recording(value)))
        elif inspect.isroutine(value):
            setattr(owner, name, self.recording(value))
        else:
            setattr(owner, name, Replacement(value, self.recording(value)))
        return ""

    def _wrap_operator(self, operators: Any) -> str:
        """Record the calls of an operator that a library registers later; Python calls it by its packet or an overload."""
        wanted = self.function.replace(".", "::", 1)
        self.kind = "operator"
        recorded: dict[Any, Callable[..., Any]] = {}
        for kind, name_of in (
            (operators.OpOverloadPacket, lambda operator: operator._qualified_op_name),
            (operators.OpOverload, lambda operator: operator._schema.name),
        ):

            def call(
                operator: Any,
                /,
                *args: Any,
                plain: Any = kind.__call__,
                name_of: Any = name_of,
                **kwargs: Any,
            ) -> Any:
                if name_of(operator) != wanted:
                    return plain(operator, *args, **kwargs)
                if operator not in recorded:
                    self._read_schema(operator)
                    recorded[operator] = self.recording(functools.partial(plain, operator))
                return recorded[operator](*args, **kwargs)

            kind.__call__ = call
        return ""

    def _read_schema(self, operator: Any) -> None:
        """Read parameters and defaults; those of a packet are its first overload's."""
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

    def recording(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `function` and records the call. torch.compile sees the plain call alone."""
        is_compiling, note_compiled = self._compile_hooks()

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                note_compiled()
                return function(*args, **kwargs)
            call = self.begin(args, kwargs)
            result = function(*args, **kwargs)
            if call is not None:
                self.end(call)
            return result

        return recorded

    def _compile_hooks(self) -> tuple[Callable[[], bool], Callable[[], bool]]:
        compiler: Any = getattr(sys.modules.get("torch"), "compiler", None)
        if not hasattr(compiler, "is_compiling"):
            return bool, bool

        def note_compiled() -> bool:
            self.compiled += 1
            return True

        # As torch.compiler.assume_constant_result does, without the import of Dynamo, which takes seconds. Dynamo then calls the
        # function while it traces, and the compiled program does not contain the call.
        note_compiled._dynamo_marked_constant = True  # type: ignore[attr-defined]
        return compiler.is_compiling, note_compiled

    # A call

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the row of a call and its start; `None` if its duration is not wanted."""
        if kwargs.get("warmup") is True and self.kind == "kernel":
            return None
        try:
            return self._begin(args, kwargs)
        except TracedCall:
            self.compiled += 1
            return None
        except Exception as error:
            self._miss(error)
            return None

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
                row = self.rows[key] = Row(described(key), "wall" if device is None else "gpu")
            if is_capturing:
                row.graph_calls += 1
                return None
            row.calls += 1
            if row.calls & (row.calls - 1) == 0:  # the calls 1, 2, 4, 8, ...
                try:
                    self._read_indices(row, tensors, torch)
                except Exception as error:
                    self._miss(error)
            if row.calls == 1:
                row.warm_up += 1
                self._begin_process(torch, device)
                return None
        if device is None:
            return row, time.perf_counter(), None
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

    def end(self, call: Any) -> None:
        """Add the duration of a call to its row."""
        row, opened, stream = call
        try:
            if stream is None:
                ended = time.perf_counter()
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
            if time.monotonic() >= self.next_write:
                self.write()
        except Exception as error:
            self._miss(error)

    def _event(self, stream: Any) -> Any:
        spare = self.spare_events[stream.device_index]
        return spare.pop() if spare else sys.modules["torch"].cuda.Event(enable_timing=True)

    def _resolve(self) -> None:
        """Take the timings and values that the GPU has completed, without waiting for it."""
        with self.lock:
            while self.pending and self.pending[0][0].query():
                self.pending.popleft()[1]()

    def _read_indices(self, row: Row, tensors: list[tuple[str, Any]], torch: Any) -> None:
        """Read the range of integer tensors, and few values of those that index. A GPU copies them on its own."""
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

    def _miss(self, error: Exception) -> None:
        self.missed += 1
        self.error = self.error or f"{type(error).__name__}: {error}"

    # The file of the process

    def _begin_process(self, torch: Any, device: Any) -> None:
        if device is not None and not self.device:
            self.device = torch.cuda.get_device_name(device)
        if not self.has_begun:
            self.has_begun = True
            util = sys.modules.get("multiprocessing.util")
            if util is not None:  # a forked worker of multiprocessing calls no other function at its end
                util.Finalize(None, self.finish, exitpriority=0)
            self.write()

    def finish(self) -> None:
        """Write the file of a process that ends, with the timings that a GPU still owes."""
        if not self.is_found:
            return
        limit = time.monotonic() + LAST_WAIT_S
        try:
            self._resolve()
            while self.pending and time.monotonic() < limit:
                time.sleep(0.01)
                self._resolve()
        except Exception as error:
            self._miss(error)
        self.write()

    def write(self) -> None:
        """Write the file of this process, whole or not at all."""
        import json

        begun = time.monotonic()
        try:
            with self.lock:
                text = json.dumps(self._data())
            temporary = f"{self.part}.{threading.get_ident()}"
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self.part)
        except Exception as error:
            self._miss(error)
        ended = time.monotonic()
        self.next_write = ended + max(WRITE_EVERY_S, (ended - begun) / WRITE_SHARE)

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
            "pid": os.getpid(),
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


class Replacement:
    """Replaces a callable object: records its calls, and has its attributes."""

    def __init__(self, replaced: Callable[..., Any], recorded: Callable[..., Any]) -> None:
        self.__wrapped__ = replaced
        self._recorded = recorded

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object and record the call."""
        return self._recorded(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the object."""
        return getattr(self.__wrapped__, name)
