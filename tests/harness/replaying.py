"""Records calls in a forked process, replays them in this one, and prints what came of it, as JSON; run by the tests."""

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
from harness.wire.records import Record
from harness.worker.candidate.loading import import_candidate
from harness.worker.guest import watch
from harness.worker.interpreter import interpreter
from harness.worker.recording import recorder as recording
from harness.worker.replay.replay_endings import Diverged
from harness.worker.replay.replayer import Replayer

torch.set_num_threads(1)
SIZES = (40, 480)


class Recorded(msgspec.Struct):
    """What a guest would send of its calls."""

    right: list[bool]
    why: list[str]
    records: list[Record | None]
    error: str = ""


def given(size, seed):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def recorded(file, source, name):
    """In a process of its own, as candidates patch what they run on."""
    watch.count_host_elements()
    module = import_candidate(file, source)
    recorder = recording.Recorder(str(file))
    found = Recorded([], [], [])
    for size in SIZES * 2:
        x = given(size, size)
        want = x * 2 + 1
        with interpreter.observe({"x": x}) as seen:
            watched = watch.OperatorWatch(seen, str(file), recorder)
            recorder.begin({"x": x})
            with watched:
                out = getattr(module, name)(x)
        made, why = recorder.finish([out])
        found.right.append(bool(torch.allclose(out, want)))
        found.why.append(why)
        found.records.append(made)
    return found


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
    """What a replay on other values says, on the call's own where Python read values; `refused` where it cannot be made."""
    values = given(size, size + 1)
    try:
        try:
            replayer.run(record, {"x": values.clone()}, backwards=True)
        except Diverged:
            values = given(size, size)
            replayer.run(record, {"x": values.clone()}, backwards=True)
        got, origins = replayer.output(record.returned[0])
    except Exception as error:  # noqa: BLE001 -- whatever a kernel raises
        return {"refused": f"{type(error).__name__}: {error}"}
    return {
        "right": bool(torch.allclose(got, values * 2 + 1)),
        "origins": origins,
        "touched": list(replayer.touched()),
    }


def main():
    interpreter.prepare(target("gfx942"))
    recording.install()
    gc.freeze()  # as the fork server does: what the imports left is no candidate's
    source = (Path(__file__).parent / "replay_honest.py").read_text(encoding="utf-8")
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:]:
            gc.freeze()  # what replays hold is no candidate's either
            file = Path(folder) / "kernel.py"
            found = in_a_fork(lambda name=name, file=file: recorded(file, source, name))
            replayer = Replayer(source, str(file), ())
            replays = [
                {"refused": "no record"} if made is None else outcome(replayer, made, size)
                for size, made in zip(SIZES * 2, found.records, strict=True)
            ]
            report[name] = {"right": found.right, "why": found.why, "error": found.error, "replays": replays}
    print(json.dumps(report))  # noqa: T201


main()
