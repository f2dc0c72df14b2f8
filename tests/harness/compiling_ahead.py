"""Compiles candidates of `kernels.py` for gfx942 in a process without help, and in ones whose helpers fare well or badly.

Prints, by candidate and fate, the report, how many kernels helpers told of, the steps reported, what was printed, and how many
processes were left; run by the tests.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
import torch

from harness.targets import target
from harness.worker.compiler import ahead, capture, files
from harness.worker.compiler.compiler import ArgumentSpec, CaseSpec, compile_candidate, prepare
from harness.worker.serving import linux

CORES = 3
SIZES = (1 << 20, 99_999)

torch.set_num_threads(1)
linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
steps = []
prepare(target("gfx942"), lambda: steps.append(1))

import kernels  # noqa: E402 -- after the process is prepared, as a guest does it


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(*_: object) -> None:
    while True:
        time.sleep(60)


FATES = {
    "alone": {},
    "helped": {},
    "child killed": {"_write": die},
    "scout hung": {"_collect": hang, "HOST_S": 1},
}


def compiled(name: str, fate: str) -> object:
    cores = 1 if fate == "alone" else CORES
    os.sched_getaffinity = lambda _: set(range(cores))
    for attribute, value in FATES[fate].items():
        setattr(ahead, attribute, value)
    shape = {size: torch.empty(size, device="meta").stride() for size in SIZES}
    cases = [
        CaseSpec(f"n{size}", tuple(ArgumentSpec(one, (size,), shape[size], "float32") for one in "xy"))
        for size in SIZES
    ]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as printed:
        os.environ["TRITON_CACHE_DIR"] = folder
        capture.remember()
        os.dup2(printed.fileno(), 1)
        report = compile_candidate(kernels, name, cases, target("gfx942"))
        sys.stdout.flush()
        groups = sorted(one.name for one in Path(folder).rglob("__grp__*"))
        said = os.pread(printed.fileno(), 4096, 0).decode()
    return {
        "report": msgspec.to_builtins(report),
        "trusted": len(files._trusted),
        "steps": len(steps),
        "printed": said,
        "groups": groups,
        "left": len(linux.children(os.getpid())),
    }


def in_a_fork(name: str, fate: str) -> object:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        with os.fdopen(writing, "w") as out:
            json.dump(compiled(name, fate), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told_of:
        found = json.load(told_of)
    os.waitpid(pid, 0)
    return found


def main() -> None:
    asked = dict(one.split("=") for one in sys.argv[1:])
    print(  # noqa: T201
        json.dumps(
            {
                name: {fate: in_a_fork(name, fate) for fate in fates.split(",")}
                for name, fates in asked.items()
            }
        )
    )


main()
