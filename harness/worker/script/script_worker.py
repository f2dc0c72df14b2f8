"""Role `script`: runs a script and reports the calls of its entry points, or runs a program and reports its results."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from harness.hardware.targets import target
from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import Hello
from harness.wire.program_messages import SCRIPT_REQUESTS, Compare, Compared, RunProgram, Value
from harness.wire.script_messages import Record, Recorded, Script
from harness.wire.server_messages import Spawn
from harness.worker.candidate.loading import confine, import_candidate
from harness.worker.interpreter import interpreter
from harness.worker.kit import gpu
from harness.worker.kit.poison import Poison
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.autotuning import Mode, policy

from . import seeding
from .call_log import CallLog
from .early_end import EndsHere, TimeLimit
from .fresh_memory import FreshMemory
from .launch_count import count_launches
from .nodes import NodeRun
from .performance_inputs import call_with_largest
from .program import run_program
from .values import find_difference
from .wrapping import wrap

TEST, STAND_IN = "wavedeck_test", "wavedeck_recorded"
"""Names of the test's module, and of the module that stands for the reference."""
_STAND_IN_TEXT = f"""import {STAND_IN}
globals().update({{name: value for name, value in vars({STAND_IN}).items() if not name.startswith("__")}})
"""


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer requests until the judge closes the channel: `Record`, or `RunProgram` and then `Compare`."""
    layers = confine(spawn, limits.ADDRESS_SPACE_BYTES)
    if spawn.device is not None:
        warm.warm_gpu(spawn.device)
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    runner: _Runner | None = None
    results: Value | None = None
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        match SCRIPT_REQUESTS.decode(frame.payload):
            case Record() as request:
                runner = runner or _Runner(spawn, request)
                channel.send(ENCODER.encode(runner.run(request)))
            case RunProgram() as request:
                _prepare(spawn, request.target)
                ran = run_program(request, Path(spawn.scratch))
                results = ran.results
                channel.send(ENCODER.encode(ran))
            case Compare() as request:
                channel.send(ENCODER.encode(_compare(request, results)))


def _prepare(spawn: Spawn, target_name: str) -> Any:
    """Prepare the process for foreign code, once; return the function that observes kernels."""
    if spawn.device is None:
        interpreter.prepare(target(target_name))
        return interpreter.observe
    warm.start_gpu(spawn.device)
    return count_launches


def _compare(request: Compare, expected: Value | None) -> Compared:
    try:
        difference = find_difference(request.results, expected, request.rule, "results")
    except (AttributeError, RuntimeError, ValueError) as error:
        # The other program is foreign code: its bytes may not fill their shape.
        difference = f"the results cannot be compared: {error}"
    return Compared(nonce=request.nonce, difference=difference.partition("\n")[0][:400])


class _Runner:
    """Prepares the process once, and runs the script for each request."""

    def __init__(self, spawn: Spawn, request: Record) -> None:
        self._scratch = Path(spawn.scratch)
        self._on_gpu = spawn.device is not None
        self._observe = _prepare(spawn, request.target)
        if self._on_gpu:
            # A recording times nothing, so the first config that runs is as good as any.
            policy.mode, policy.rehearses = Mode.FIRST, True
            policy.install()
        seeding.install()

    def run(self, request: Record) -> Recorded:
        """Run the script and return its report, which includes what the script raises."""
        began = time.monotonic()
        seeding.draw_from(request.seed)
        script = request.script
        test = ModuleType(TEST if script.arguments is None else "__main__")
        namespace = vars(test)

        def oracle() -> Any:
            function = namespace.get(script.oracle) if script.oracle else None
            return function if callable(function) else None

        log = CallLog(request, oracle, self._observe)
        error, ended_after = "", 0
        loaded = set(sys.modules)
        nodes: tuple[str, ...] = ()
        notes: tuple[str, ...] = ()
        try:
            module = import_candidate(self._scratch / "reference.py", script.reference)
            recorded = {name: wrap(log, module, name) for name in _recorded_names(module, script)}
            file = self._write(script)
            self._replace_reference(script, namespace, vars(module) | recorded)
            sys.modules[TEST] = test
            with FreshMemory(log, Poison(request.poison)):
                nodes, notes = _run_test(test, file, request, log, on_gpu=self._on_gpu)
        except EndsHere:
            ended_after = len(log.calls)
        except BaseException as raised:  # noqa: BLE001 -- scripts may raise anything, also SystemExit
            error = _first_and_last_line(raised)
            traceback.print_exc(file=sys.stderr)
        if self._on_gpu and script.performance and not error and not ended_after:
            notes = (*notes, *self._call_for_timing(script, log, Poison(request.poison)))
        _forget_modules(set(sys.modules) - loaded, self._scratch)
        np.seterr(all="ignore")
        return Recorded(
            nonce=request.nonce,
            calls=tuple(log.calls),
            error=error,
            seconds=time.monotonic() - began,
            nodes=nodes,
            ended_after=ended_after,
            notes=notes,
        )

    def _call_for_timing(self, script: Script, log: CallLog, kind: Poison) -> tuple[str, ...]:
        """Make the call with inputs for timing. Return a note if that fails: the test's own calls remain."""
        count = len(log.calls)
        log.for_timing = True
        try:
            with FreshMemory(log, kind):
                call_with_largest(script.performance, sys.modules[STAND_IN], gpu.HERE)
        except Exception as error:  # noqa: BLE001 -- the benchmark's own code
            torch.cuda.synchronize()  # raises and ends the process if the context is broken: no run could use it
            return (f"its inputs for timing are not judged: {_first_and_last_line(error)}",)
        return () if len(log.calls) > count else ("its inputs for timing lead to no further call",)

    def _write(self, script: Script) -> Path:
        """Write the test and its helpers; return the test's file."""
        folder = self._scratch / "benchmark"
        file = folder / script.test_file
        for name, text in ({script.test_file: script.test} | script.helpers).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        if script.reference_file:
            (folder / script.reference_file).parent.mkdir(parents=True, exist_ok=True)
            (folder / script.reference_file).write_text(_STAND_IN_TEXT, encoding="utf-8")
        for path in (str(file.parent), str(folder)):
            if path not in sys.path:
                sys.path.insert(0, path)
        os.chdir(folder)
        return file

    def _replace_reference(
        self, script: Script, namespace: dict[str, Any], reference: dict[str, Any]
    ) -> None:
        """Put the recorded reference into the test's namespace, or into a module that the test imports."""
        stand_in = ModuleType(STAND_IN)
        public = {name: value for name, value in reference.items() if not name.startswith("__")}
        vars(stand_in).update(public)
        sys.modules[STAND_IN] = stand_in
        if script.reference_file:  # a script makes packages itself, and fills them as it needs them
            names = [name for name in script.modules if "." not in name]
        else:
            names = list(script.modules)
            namespace |= public
        sys.modules.update(dict.fromkeys(names, stand_in))


def _execute(script: Script, file: Path, namespace: dict[str, Any]) -> Any:
    """Execute the test as a module or as a program, call its function, and return what the function returns."""
    namespace["__file__"] = str(file)
    if script.arguments is not None:
        sys.argv[:] = [str(file), *script.arguments]
    try:
        exec(compile(script.test, str(file), "exec"), namespace)  # noqa: S102 -- the benchmark's own test
        if script.runner:
            return namespace[script.runner]()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    return None


def _run_test(
    test: ModuleType, file: Path, request: Record, log: CallLog, *, on_gpu: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run the test, its nodes with pytest. Return the chosen nodes, and notes about the choice."""
    script = request.script
    if not script.is_pytest:
        is_limited = request.budget_s > 0
        returned = None
        with TimeLimit(request.budget_s, lambda: log.judged > 0) if is_limited else nullcontext():
            returned = _execute(script, file, vars(test))
        # A test that catches exceptions often returns their text.
        is_empty = returned is None or log.calls
        text = " ".join(repr(returned).split())[:300]
        return (), () if is_empty else (f"`{script.runner}` returns {text}",)
    _execute(script, file, vars(test))
    run = NodeRun(test, file, script.nodes, request.budget_s, log, on_gpu=on_gpu)
    run.run()
    return tuple(run.chosen), run.notes


def _forget_modules(names: set[str], folder: Path) -> None:
    """Unload modules of the test, so that calls of the next run reach the log of that run."""
    for name in names:
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if getattr(module, "__spec__", None) is None or (file and Path(file).is_relative_to(folder)):
            del sys.modules[name]


def _first_and_last_line(raised: BaseException) -> str:
    """Return both lines: Triton's compile errors have the place in the first and the reason in the last line."""
    lines = "".join(traceback.format_exception_only(raised)).strip().splitlines()
    return " ".join(dict.fromkeys((lines[0].strip(), lines[-1].strip())))[:400]


def _recorded_names(module: ModuleType, script: Script) -> set[str]:
    """Return the entry points, and the reference's classes that the test names.

    The test may pass instances of these classes to an entry point.
    """
    words = set(re.findall(r"\w+", script.test))
    classes = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and name in words
    }
    return classes | {name for name in script.entry_points if hasattr(module, name)}
