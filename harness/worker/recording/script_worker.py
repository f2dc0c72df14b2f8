"""Role `script`: runs a script and reports the calls of its entry points, or makes one of them again.

It also runs a program and reports its results, and makes the first call of a kernel.
"""

from __future__ import annotations

import math
import re
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace

from harness.hardware.targets import target
from harness.wire import limits
from harness.wire.channels.channel import ENCODER, Channel, ChannelClosed
from harness.wire.messages.guest import Hello
from harness.wire.messages.program import (
    SCRIPT_REQUESTS,
    Compare,
    FirstCall,
    ReadInputs,
    Results,
    RunProgram,
    ScriptAnswer,
    ScriptRequest,
)
from harness.wire.messages.script import (
    ADAPTER,
    NAN,
    RanCall,
    RanScript,
    RecordedCall,
    RunCall,
    RunScript,
    Script,
)
from harness.wire.messages.server import Spawn
from harness.worker.candidate.loading import confine, import_candidate
from harness.worker.guest.first_call import make_first_call, read_inputs
from harness.worker.interpreter import interpreter
from harness.worker.kit import gpu
from harness.worker.kit.poison import Poison, open_elements
from harness.worker.recording.one_call.host_operators import CastWatch
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.autotuning import Mode, policy

from . import seeding
from .call_log import CallLog
from .execution import EndsHere, TimeLimit, execute, in_one_line, lay_texts, run_program
from .expressions import data_of, tensor_problem
from .nodes import NodeRun
from .one_call import on_gpu
from .one_call.host_operators import FreshMemory
from .performance_inputs import call_with_largest
from .values import find_difference, tensor_of
from .wrapping import wrap

TEST, STAND_IN = "wavedeck_test", "wavedeck_recorded"
"""Names of the test's module, and of the module that replaces the reference."""
_STAND_IN_TEXT = f"""import {STAND_IN}
globals().update({{name: value for name, value in vars({STAND_IN}).items() if not name.startswith("__")}})
"""


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer requests until the judge closes the channel: `RunScript` and `RunCall`, `RunProgram` and then `Compare`, or one
    `FirstCall`.
    """
    layers = confine(spawn, limits.ADDRESS_SPACE_BYTES)
    if spawn.device is not None:
        warm.warm_gpu(spawn.device)
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    worker = _Worker(spawn)
    while True:
        try:
            request = SCRIPT_REQUESTS.decode(channel.receive().payload)
        except ChannelClosed:
            return
        channel.send(ENCODER.encode(worker.answer(request)))


class _Worker:
    """Prepares the process once, and answers each request."""

    def __init__(self, spawn: Spawn) -> None:
        self._device = spawn.device
        self._scratch = Path(spawn.scratch)
        self._observe: Any = None
        """Makes the context that watches the launches of a call; `None` until `_prepare`."""
        self._results: Results | None = None
        """Results of the last `RunProgram`."""
        self._casts: CastWatch | None = None
        """Watches the casts of all calls of `RunCall`, since the first."""
        self._latest: tuple[int, Sequence[RecordedCall]] = 0, ()
        """Seed and calls of the latest recording."""
        self._repeated: tuple[str, ModuleType] | None = None
        """The source of the last `RunCall`, and its module."""

    def answer(self, request: ScriptRequest) -> ScriptAnswer:
        """Return the report that a request asks for. The first request that runs a script or program prepares the process."""
        if isinstance(request, FirstCall):
            return make_first_call(request, self._scratch)
        if isinstance(request, ReadInputs):
            return read_inputs(request, self._scratch)
        if isinstance(request, Compare):
            return self._compare(request)
        if self._observe is None:
            self._prepare(request)
        if isinstance(request, RunScript):
            return self._record(request)
        if isinstance(request, RunCall):
            return self._repeat(request)
        ran = run_program(request, self._scratch)
        self._results = ran.results
        return ran

    def _prepare(self, request: RunScript | RunCall | RunProgram) -> None:
        """Prepare the process for foreign code: the interpreter, or the GPU with launches that are counted. Call it once.

        For recordings, random numbers come from the request's seeds, and an autotuned kernel runs its first config.
        """
        records = not isinstance(request, RunProgram)
        if self._device is None:
            interpreter.prepare(target(request.target))
            # A reference is the truth, and GPUs give 0 where its masked loads have no `other`.
            self._observe = partial(interpreter.observe, zero_lanes=True)
        else:
            warm.start_gpu(self._device)
            self._observe = on_gpu.count_launches
            if records:
                # A recording times nothing, so the first config that runs is as good as any.
                policy.mode, policy.rehearses = Mode.FIRST, True
                policy.install()
        if records:
            seeding.install()

    def _compare(self, request: Compare) -> str:
        """Compare another program's results with those of the last program here; return the first difference in words."""
        try:
            difference = find_difference(request.results, self._results, request)
        except (AttributeError, RuntimeError, ValueError) as error:
            # The other program is foreign code: its bytes may not fill their shape.
            difference = f"the results cannot be compared: {error}"
        return difference.partition("\n")[0][:400]

    def _repeat(self, request: RunCall) -> RanCall:
        """Make a call with the judge's inputs and return its outputs; none if it raises."""
        seeding.keep_seeds()
        try:
            if self._repeated is None or self._repeated[0] != request.source:
                module = import_candidate(self._scratch / "repeated.py", request.source)
                self._repeated = request.source, module
            arguments = {
                name: value if isinstance(value, int) else tensor_of(value).to(gpu.HERE)
                for name, value in request.arguments.items()
            }
            casts = self._casts = self._casts or CastWatch(on_gpu=self._device is not None)
            with FreshMemory(Poison(NAN), lambda: False), casts:
                returned = vars(self._repeated[1])[ADAPTER](**arguments)
            outputs = returned if isinstance(returned, tuple) else (returned,)
            if any(not isinstance(output, torch.Tensor) or tensor_problem(output) for output in outputs):
                return RanCall(())
            return RanCall(tuple(data_of(output.contiguous()) for output in outputs), casts.seen)
        except BaseException:  # noqa: BLE001 -- the reference may raise anything
            traceback.print_exc(file=sys.stderr)
            return RanCall(())

    def _record(self, request: RunScript) -> RanScript:
        """Run the script and return the calls that it made, with what it raised, if it raised.

        If the latest run had the same seed, each call states the share of its outputs that differs between both. Modules that
        the script imported are forgotten, so that the next run imports them again.
        """
        began = time.monotonic()
        seeding.draw_from(request.seed)
        script = request.script
        test = ModuleType(TEST if script.arguments is None else "__main__")
        log = CallLog(request, vars(test), self._observe)
        error, ended_after = "", 0
        loaded = set(sys.modules)
        nodes: tuple[str, ...] = ()
        notes: tuple[str, ...] = ()
        try:
            module = import_candidate(self._scratch / "reference.py", script.reference)
            recorded = {name: wrap(log, module, name) for name in _recorded_names(module, script)}
            file = self._lay(script)
            _replace_reference(script, test, vars(module) | recorded)
            sys.modules[TEST] = test
            with log.fresh_memory(), log.passing_checks():
                nodes, notes = self._run_test(test, file, request, log)
        except EndsHere:
            ended_after = len(log.calls)
        except BaseException as raised:  # noqa: BLE001 -- scripts may raise anything, also SystemExit
            error = in_one_line(raised)
            traceback.print_exc(file=sys.stderr)
        if self._device is not None and script.performance and not error and not ended_after:
            notes = (*notes, *_call_for_timing(script, log))
        _forget_modules(set(sys.modules) - loaded, self._scratch)
        np.seterr(all="ignore")
        seconds = time.monotonic() - began
        calls = log.calls
        earlier = self._latest[1] if self._latest[0] == request.seed else ()
        for number, pair in enumerate(zip(earlier, calls, strict=False)):
            calls[number] = replace(pair[1], open_share=_open_share(*pair))
        self._latest = request.seed, calls
        return RanScript(tuple(calls), error, seconds, nodes, ended_after, notes)

    def _lay(self, script: Script) -> Path:
        """Write the test, its helpers and a stand-in for the reference; return the test's file."""
        folder = self._scratch / "benchmark"
        file = folder / script.test_file
        texts = {script.test_file: script.test} | script.helpers
        if script.reference_file:
            texts[script.reference_file] = _STAND_IN_TEXT
        lay_texts(folder, texts, file.parent)
        return file

    def _run_test(
        self, test: ModuleType, file: Path, request: RunScript, log: CallLog
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Run the test, its nodes with pytest. Return the chosen nodes, and notes about the choice."""
        script = request.script
        if script.is_pytest:
            _execute(script, file, test)
            run = NodeRun(test, file, script.nodes, request.budget_s, log, on_gpu=self._device is not None)
            run.run()
            return tuple(run.chosen), run.notes
        is_limited = request.budget_s > 0
        with TimeLimit(request.budget_s, lambda: log.judged > 0) if is_limited else nullcontext():
            returned = _execute(script, file, test)
        # A test that catches exceptions often returns their text.
        is_empty = returned is None or log.calls
        text = " ".join(repr(returned).split())[:300]
        return (), () if is_empty else (f"`{script.runner}` returns {text}",)


def _call_for_timing(script: Script, log: CallLog) -> tuple[str, ...]:
    """Make the call with inputs for timing. Return a note if that fails: the test's own calls remain."""
    count = len(log.calls)
    log.for_timing = True
    try:
        with log.fresh_memory():
            call_with_largest(script.performance, sys.modules[STAND_IN], gpu.HERE)
    except Exception as error:  # noqa: BLE001 -- the benchmark's own code
        torch.cuda.synchronize()  # raises and ends the process if the context is broken: no run could use it
        return (f"its inputs for timing are not judged: {in_one_line(error)}",)
    return () if len(log.calls) > count else ("its inputs for timing lead to no further call",)


def _replace_reference(script: Script, test: ModuleType, reference: dict[str, Any]) -> None:
    """Put the recorded reference into the test, or into a module that the test imports."""
    public = {name: value for name, value in reference.items() if not name.startswith("__")}
    sys.modules[STAND_IN] = stand_in = ModuleType(STAND_IN)
    vars(stand_in).update(public)
    names = script.modules
    if script.reference_file:  # a script makes packages itself, and fills them as it needs them
        names = tuple(name for name in names if "." not in name)
    else:
        vars(test).update(public)
    sys.modules.update(dict.fromkeys(names, stand_in))


def _execute(script: Script, file: Path, test: ModuleType) -> Any:
    """Execute the test as a module or as a program, call its function, and return what the function returns."""
    if script.arguments is not None:
        sys.argv[:] = [str(file), *script.arguments]
    try:
        execute(script.test, file, test)
        return vars(test)[script.runner]() if script.runner else None
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
        return None


def _open_share(earlier: RecordedCall, call: RecordedCall) -> float:
    """Return the share of output elements that two recordings of one call differ in, from 0 to 1.

    The recordings have the same seed and other contents of fresh memory: what differs is undefined in the reference.
    """
    count = differing = 0
    for first, second in zip(earlier.outputs, call.outputs, strict=False):
        apart = open_elements(tensor_of(first.tensor), tensor_of(second.tensor))
        count += math.prod(second.tensor.shape)
        differing += 0 if apart is None else int(apart.sum())
    return differing / max(1, count)


def _forget_modules(names: set[str], folder: Path) -> None:
    """Unload modules of the test, so that calls of the next run reach the log of that run."""
    for name in names:
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if getattr(module, "__spec__", None) is None or (file and Path(file).is_relative_to(folder)):
            del sys.modules[name]


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
