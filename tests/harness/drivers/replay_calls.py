"""Records calls in a forked process, replays them in this process, and prints the outcomes as JSON."""

import gc
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import msgspec
import torch

from harness.hardware.targets import target
from harness.wire.calls.records import Record
from harness.worker.candidate.loading import import_candidate
from harness.worker.guest import watch
from harness.worker.interpreter import interpreter
from harness.worker.replay import call_recorder
from harness.worker.replay.replay_endings import Diverged
from harness.worker.replay.replayer import Replayer

torch.set_num_threads(1)
SIZES = (40, 480)


class Recorded(msgspec.Struct):
    """Results of the calls of one entry point, as a guest would send them."""

    right: list[bool]
    why: list[str]
    records: list[Record | None]
    error: str = ""


def make_input(size, seed):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def record_calls(file, source, name):
    """Runs and records four calls of one entry point; runs in a fork, because candidates patch their process."""
    watch.count_host_elements()
    module = import_candidate(file, source)
    recorder = call_recorder.Recorder(str(file))
    results = Recorded([], [], [])
    for size in SIZES * 2:
        x = make_input(size, size)
        expected = x * 2 + 1
        with interpreter.observe({"x": x}) as seen:
            watched = watch.OperatorWatch(seen, str(file), recorder)
            recorder.begin({"x": x})
            with watched:
                out = getattr(module, name)(x)
        call_record, why = recorder.finish([out])
        results.right.append(bool(torch.allclose(out, expected)))
        results.why.append(why)
        results.records.append(call_record)
    return results


def in_a_fork(work):
    with tempfile.TemporaryFile() as answer:
        pid = os.fork()
        if pid == 0:
            try:
                sent = work()
            except Exception as error:  # noqa: BLE001
                sent = Recorded([], [], [None] * 4, error=f"{type(error).__name__}: {error}")
            answer.write(msgspec.msgpack.encode(sent))
            answer.flush()
            os._exit(0)
        os.waitpid(pid, 0)
        answer.seek(0)
        return msgspec.msgpack.decode(answer.read(), type=Recorded)


def outcome(replayer, record, size):
    """Replays a call on different values and compares the output; `refused` if the replay fails.

    A call whose host code read values is replayed on its own values.
    """
    values = make_input(size, size + 1)
    try:
        try:
            replayer.run(record, {"x": values.clone()}, backwards=True)
        except Diverged:
            values = make_input(size, size)
            replayer.run(record, {"x": values.clone()}, backwards=True)
        output, origins = replayer.output(record.returned[0])
    except Exception as error:  # noqa: BLE001 -- whatever a kernel raises
        return {"refused": f"{type(error).__name__}: {error}"}
    return {
        "right": bool(torch.allclose(output, values * 2 + 1)),
        "origins": origins,
        "touched": list(replayer.touched()),
    }


def main():
    interpreter.prepare(target("gfx942"))
    call_recorder.install()
    gc.freeze()  # as the fork server does: objects of the imports do not belong to a candidate
    source = (Path(__file__).parent / "replayed_kernels.py").read_text(encoding="utf-8")
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:]:
            gc.freeze()  # objects of replays do not belong to a candidate either
            file = Path(folder) / "kernel.py"
            results = in_a_fork(lambda name=name, file=file: record_calls(file, source, name))
            replayer = Replayer(source, str(file), ())
            replays = [
                {"refused": "no record"} if call_record is None else outcome(replayer, call_record, size)
                for size, call_record in zip(SIZES * 2, results.records, strict=True)
            ]
            report[name] = {
                "right": results.right,
                "why": results.why,
                "error": results.error,
                "replays": replays,
            }
    print(json.dumps(report))  # noqa: T201


main()
