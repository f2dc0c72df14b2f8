"""Time and size limits of the judge; `docs/formats.md` has the table."""

from __future__ import annotations

import os

import msgspec


class TimeLimits(msgspec.Struct, frozen=True):
    """Seconds that a candidate has on device `cpu`; wall time where the name does not say CPU."""

    call_s: float = 60.0
    """Import and first case."""
    call_cpu_s: float = 30.0
    case_s: float = 120.0
    case_cpu_s: float = 30.0
    compile_s: float = 120.0
    """One target, from one compiled config of an autotuned kernel to the next: not for all of them together."""
    compile_all_s: float = 1200.0
    """One target, all that a candidate makes the compiler do."""

    def for_source(self, source: str) -> TimeLimits:
        """Those for one candidate in the interpreter: there an autotuned kernel runs twice in the first call of each key."""
        if "autotune" not in source:
            return self
        return msgspec.structs.replace(
            self,
            call_s=2 * self.call_s,
            call_cpu_s=2 * self.call_cpu_s,
            case_s=2 * self.case_s,
            case_cpu_s=2 * self.case_cpu_s,
        )


OVERHEAD = 0.5
"""CPU seconds that the judge's own recording and copying in a process may add to each of the candidate's; 0.1 to 0.3 were measured."""
ON_CPU = TimeLimits()
ON_GPU = TimeLimits(call_s=180.0, call_cpu_s=180.0, case_s=120.0, case_cpu_s=120.0)
"""A guest on a GPU compiles in its calls, every config of an autotuned kernel for each kind of input, and waits by turning."""
GPU_SLOTS = 2
"""Candidates judged at once on one GPU: inputs are made for one while another runs."""
GPU_WORKER_CPU_S = 3600
"""A guest or timer that is started before anybody knows what it will run; each call has limits of its own."""

SERVER_START_S = 60.0
SELF_TEST_S = 20.0
GUEST_START_S = 30.0

FAREWELL_S = 10.0
"""To answer what was left behind; the candidate's code no longer runs by then."""
INTERPRETER_S = 10.0
"""For the interpreter to end after a GPU's evaluation has ended: what it finds is added, but nothing waits longer for it."""
ORACLE_S = 60.0
"""For the judge to make inputs and compare outputs, beside the time a case may take; after that it is replaced."""
END_S = 5.0
"""For a killed tree to be gone before its warden is killed too."""

ADDRESS_SPACE_BYTES = 8 << 30
"""Beyond what the imports have mapped: vendors' builds of torch map gigabytes."""
COMPILE_ADDRESS_SPACE_BYTES = 32 << 30
"""Arguments at `gpu` sizes are mapped, not touched."""
COMPILE_STEPS = 10_000
"""Configs that one candidate may have compiled: more is no autotuning."""
MOST_LOAD = 4.0
"""A machine with more to do than cores stretches compile limits by what each core has to do, up to this."""
FILE_BYTES = 64 << 20
OPEN_FILES = 256
SCRATCH_BYTES = 1 << 30
SCRATCH_FILES = 20_000
SCRATCH_PATH_BYTES = 3000
"""Of the longest path in a worker's folder: what lies deeper than 4096 cannot be looked at by name."""
PROCESSES = 64
"""Of one worker's tree; compilers start a few, one after the other."""
WATCH_S = 0.2
"""How often a warden looks at its tree and its folder."""
PRINTED_BYTES = 64 << 10
ANSWER_BYTES = 256 << 20
GPU_ANSWER_BYTES = (4 << 30) - 1
"""All outputs of one call."""
SOURCE_BYTES = 1 << 20
COPIES = 64
"""Copies that the host may make into parts of tensors in one call: more of them move elements."""
HOST_ELEMENTS = 1024
"""Elements that a candidate may move between tensors and Python in one call: sizes and offsets, not the work."""


def load() -> float:
    """How much each core has to do now, from 1 to `MOST_LOAD`: what takes a second alone takes so many."""
    return min(MOST_LOAD, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


def tasks() -> int:
    """Processes and threads that one worker may have: linkers start a thread for each core of the machine."""
    return max(256, 2 * (os.cpu_count() or 1) + PROCESSES)
