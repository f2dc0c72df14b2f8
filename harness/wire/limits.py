"""Time and size limits of the judge; `docs/data.md` has the table."""

from __future__ import annotations

import math
import os

import msgspec


class TimeLimits(msgspec.Struct, frozen=True):
    """Seconds that a candidate has on device `cpu`; wall time where the name does not say CPU."""

    call_s: float = 60.0
    """For the import and the first case."""
    call_cpu_s: float = 30.0
    case_s: float = 120.0
    case_cpu_s: float = 30.0
    host_cpu_s: float = 30.0
    """For the host code of one case at `gpu` sizes while its kernels are compiled; compiling does not count."""
    compile_s: float = 120.0
    """For one target, from one compiled config of an autotuned kernel to the next."""
    compile_all_s: float = 1200.0
    """For one target and everything that a candidate compiles."""
    rest_s: float = 3.0
    """For the cases after the first wrong one, and the values of a candidate that does not compile: they explain the error."""

    def for_source(self, source: str) -> TimeLimits:
        """Return the limits in the interpreter, where an autotuned kernel runs twice in the first call of each key."""
        if "autotune" not in source:
            return self
        return msgspec.structs.replace(
            self,
            call_s=2 * self.call_s,
            call_cpu_s=2 * self.call_cpu_s,
            case_s=2 * self.case_s,
            case_cpu_s=2 * self.case_cpu_s,
        )

    def under_load(self, factor: float) -> TimeLimits:
        """Return the limits in the interpreter on a busy machine, where a call takes `factor` times as long.

        Only wall times grow: a wait for a core costs no CPU time, and it is no fault of the candidate.
        """
        return msgspec.structs.replace(
            self,
            call_s=float(math.ceil(factor * self.call_s)),
            case_s=float(math.ceil(factor * self.case_s)),
        )


OVERHEAD = 0.5
"""CPU seconds that the judge's watching and copying may add to each CPU second of the candidate; 0.1 to 0.3 were measured."""
ON_CPU = TimeLimits()
ON_GPU = TimeLimits(call_s=180.0, call_cpu_s=180.0, case_s=120.0, case_cpu_s=120.0)
"""A guest on a GPU compiles in its calls (each config for each kind of input) and waits in a busy loop."""
VAULT_SHARE = 0.15
"""Share of a GPU's memory in which the judges on it keep inputs and oracle outputs, all judges together."""
MOST_GRAPH_BYTES = 4 << 30
GRAPH_SHARE = 0.025
"""Share of a GPU's memory that each timer may take for the graph of its calls: inputs and outputs together."""
GPU_WORKER_CPU_S = 3600
"""For a guest or timer that is started before its candidate is known; each call has limits of its own."""

TIMING_WAITS_S = 5.0
"""A candidate between two calls lets a timing go first that it has seen waiting for so long."""

STARTS_AT_ONCE = 2
"""Spare guests and timers that start side by side on one GPU: the driver makes one context after another for the whole node."""

SERVER_START_S = 60.0
SELF_TEST_S = 20.0
GUEST_START_S = 200.0
"""For a worker to get ready. Long, because a driver makes one context after the other for the whole node: that wait is ours. A
worker that dies is seen at once."""

FAREWELL_S = 10.0
"""For the report on what was left behind; the candidate's code no longer runs then."""
INTERPRETER_S = 10.0
"""For the interpreter to end after a GPU's evaluation; later findings are not waited for."""
SCRIPT_S = 45.0
"""For one run of a public benchmark's script, on a machine without other load; see `script_s`."""
SCRIPT_BUDGET_S = 20.0
"""CPU seconds of the first run: a script that takes longer ends early, and pytest's nodes are chosen in this time."""
SCRIPT_CPU_S = 600
"""For all runs of one script worker."""
FULL_SIZE_CPU_S = 5.0
"""For three programs of each launch of a case at `gpu` sizes. CPU time, so that the load of the machine decides nothing."""
ORACLE_S = 60.0
"""For the judge to make inputs and compare outputs, in addition to the case's own limit; a slower judge is replaced."""
ALIVE_S = 1.0
"""Pause between two reports that only say that work continues; far below the silence that the engine allows."""
END_S = 5.0
"""For a killed tree to end, before its warden is killed too."""

ADDRESS_SPACE_BYTES = 8 << 30
"""In addition to the mappings of imports: vendors' builds of torch map gigabytes."""
COMPILE_ADDRESS_SPACE_BYTES = 32 << 30
"""Arguments at `gpu` sizes are mapped, not touched."""
COMPILE_STEPS = 10_000
"""Configs that one candidate may compile."""
MOST_LOAD = 4.0
"""On a machine with more load than cores, the wall times of compiles, and of calls on `cpu`, grow with the load per core,
up to this factor."""
FILE_BYTES = 64 << 20
OPEN_FILES = 256
SCRATCH_BYTES = 1 << 30
SCRATCH_FILES = 20_000
SCRATCH_PATH_BYTES = 3000
"""Length of the longest path in a worker's folder; a path above 4096 bytes cannot be opened by name."""
PROCESSES = 64
"""Processes of one worker's tree; compilers start a few, one after the other."""
WATCH_S = 0.2
"""Period at which a warden checks its tree and its folder."""
PRINTED_BYTES = 64 << 10
ANSWER_BYTES = 256 << 20
GPU_ANSWER_BYTES = (4 << 30) - 1
"""All outputs of one call."""
RECORDING_BYTES = 2 << 30
"""All calls of one run of a script, with inputs, outputs and truths."""
KEPT_RECORDINGS_BYTES = 1 << 30
"""Recordings of tasks that a judge keeps besides those of the task that it judges."""
SOURCE_BYTES = 1 << 20
COPIES = 64
"""Copies that the host may make into parts of tensors in one call; more would do the kernel's work."""
HOST_ELEMENTS = 1024
"""Elements that a candidate may move between tensors and Python in one call: enough for sizes and offsets."""


def memory_words(size_bytes: float | None) -> str:
    """Return bytes in binary units, in three digits: `1.5 MiB`, `140 GiB`; `-` if they are not known."""
    if size_bytes is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size_bytes) < 1024:
            digits = f"{size_bytes:.0f}" if unit == "B" or abs(size_bytes) >= 100 else f"{size_bytes:.3g}"
            return f"{digits} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.3g} TiB"


def graph_bytes(device_bytes: int) -> int:
    """Return the bytes that a timer may take for a graph, by the memory of its GPU."""
    return min(MOST_GRAPH_BYTES, int(device_bytes * GRAPH_SHARE))


def load() -> float:
    """Return the current load per core, from 1 to `MOST_LOAD`: the factor by which work takes longer."""
    return min(MOST_LOAD, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


def script_s() -> float:
    """Return the seconds for one run of a script at the current load: at most `SCRIPT_S * MOST_LOAD`."""
    return SCRIPT_S * load()


def tasks() -> int:
    """Return how many processes and threads one worker may have; linkers start a thread for each core."""
    return max(256, 2 * (os.cpu_count() or 1) + PROCESSES)
