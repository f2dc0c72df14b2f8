"""Runs kernels with tapes and without tapes and prints both results as JSON."""

import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import torch

from harness.hardware.targets import target
from harness.worker.interpreter import interpreted_launches
from harness.worker.interpreter.interpreter import observe, prepare
from harness.worker.interpreter.tapes import programs, tracing

torch.set_num_threads(1)
prepare(target("gfx942"))

import taped_kernels  # noqa: E402 -- after the process is prepared, as a guest does it


class InPython:
    """Runs each program in Python, without a tape."""

    def __init__(self, function, arguments, **_) -> None:
        self.function, self.arguments = function, arguments

    def run(self, position) -> None:
        programs.begin_program(position)
        self.function(**self.arguments)


taped = programs.Programs
counts = {"by_tape": 0, "resumed": 0, "traced": 0}


def counting(owner, name: str, key: str) -> None:
    method = getattr(owner, name)

    def counted(*args):
        counts[key] += 1
        return method(*args)

    setattr(owner, name, counted)


counting(programs.OperationTape, "run", "by_tape")
counting(tracing.Resume, "run", "resumed")
counting(tracing.Trace, "run", "traced")


def call(name: str, calls: int) -> dict:
    torch.manual_seed(0)
    counts.update(dict.fromkeys(counts, 0))
    results = []
    for number in range(calls):
        inputs = taped_kernels.inputs(name, number)
        with observe(inputs) as seen:
            raised, out = "", ()
            try:
                out = getattr(taped_kernels, name)(number, **inputs)
            except Exception as error:  # noqa: BLE001
                raised = f"{type(error).__name__}: {error}"
                trace = error.__cause__ and error.__cause__.__traceback__
                while trace is not None:
                    if trace.tb_frame.f_code.co_filename == taped_kernels.__file__:
                        raised += f" line {trace.tb_lineno}"
                    trace = trace.tb_next
        results.append(
            {
                "raised": raised,
                "outputs": [part.view(torch.uint8).tolist() for part in out],
                "requested": [seen.requested_read_bytes, seen.requested_write_bytes],
                "unique": [seen.unique_read_bytes, seen.unique_write_bytes],
                "dot_flops": seen.dot_flops,
                "missed": [seen.missed_loads, seen.missed_stores],
                "uninitialised": seen.uninitialised,
                "promises": seen.false_promises,
            }
        )
    return {"results": results, **counts}


seen = {}
for name in taped_kernels.NAMES:
    interpreted_launches.Programs = taped
    by_tape = call(name, 3)
    interpreted_launches.Programs = InPython
    seen[name] = {"tape": by_tape, "python": call(name, 3)}
sys.stdout.write(json.dumps(seen))
