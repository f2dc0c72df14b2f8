"""How many candidates are judged at once on one GPU, by the cores of the node and the memory of the GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable

from harness.hardware.recognition import product_of
from harness.wire.device import Device
from harness.wire.limits import VAULT_SHARE, graph_bytes
from harness.wire.messages.clock import PLAYERS, WHOLE
from suites.costs import task_cost
from suites.errors import SuiteError
from suites.task import Task

KEPT_CORES = 2
"""Cores per GPU that stay free for the timed process and for the clock."""
CORES_A_SLOT = 2
"""A candidate keeps about two cores busy: its interpreter or compiler, and the process that launches on the GPU."""
LEAST, MOST = 2, 8
"""Bounds by cores: with two slots one candidate is prepared while another is timed; more than eight were never tried."""
MOST_UNTIMED = 16
"""Bound by cores where nothing is timed. A slot takes one core then: its candidate waits for the driver half of the time."""

USABLE_SHARE = 0.9
"""Share of the GPU's memory that the rule gives away. The rest is for the candidates' own buffers and for fragmentation."""
CONTEXT_BYTES = 512 << 20
"""Memory of a process with a GPU context, before it allocates anything."""
COPIES_A_SLOT = 8
"""Copies of a case while it is judged: shared inputs and outputs, buffers of guest and recorder, a comparison in float64."""
USUAL_CASE_BYTES = 1 << 30
"""Largest case of a task without a known cost; the built-in tasks have cases up to this size."""
RECORDED_CASE_BYTES = 256 << 20
"""Largest case of a recorded task: all cases of a recording together stay below 512 MiB, and most are far smaller."""


TIMERS_A_CANDIDATE = 1
"""One timer records the candidate's calls. A side without a launch tape needs more, which are started when that is known."""
SEATS = 2 * WHOLE.pairs
"""Tapes that wait to be sampled side by side: of baseline and candidate, in each pair."""
CONTEXTS_A_SLOT = 1 + 2 + TIMERS_A_CANDIDATE
"""The judge, the guest and one spare guest, and the timer that waits for the lease."""
CONTEXTS_UNTIMED = 1 + 2 + 1
"""The judge, the guest and one spare guest, and the script worker of a recorded task."""


def slots_of(
    device: Device, *, gpus: int, cores: int, case_bytes: int = USUAL_CASE_BYTES, timed: bool = True
) -> int:
    """Return how many candidates are judged at once on a GPU of a pool with `gpus` GPUs on `cores` cores.

    The smaller of two numbers, and at least one.

    - Cores: the GPU's share of the cores, less `KEPT_CORES`, divided by `CORES_A_SLOT`; from `LEAST` to `MOST`.
    - Memory: one timing samples at a time, on all seats of the players, each with a graph or two copies of the largest case.
      The judges share `VAULT_SHARE` for inputs that they keep. The rest of `USABLE_SHARE` is divided by the need of a slot: its
      contexts, and `COPIES_A_SLOT` copies of the largest case.

    With `timed` False there are no timers, a slot takes one core, and the bound is `MOST_UNTIMED`.
    A candidate may need more than this. If it runs out of memory beside others, it is judged again alone.
    """
    cores_a_slot, most = (CORES_A_SLOT, MOST) if timed else (1, MOST_UNTIMED)
    by_cores = max(LEAST, min(most, (cores // max(gpus, 1) - KEPT_CORES) // cores_a_slot))
    memory_bytes = _memory_bytes(device)
    if memory_bytes is None:
        return min(LEAST, by_cores)
    a_seat = max(graph_bytes(memory_bytes), 2 * case_bytes)
    once = PLAYERS * CONTEXT_BYTES + SEATS * a_seat if timed else 0
    contexts = CONTEXTS_A_SLOT if timed else CONTEXTS_UNTIMED
    a_slot = contexts * CONTEXT_BYTES + COPIES_A_SLOT * case_bytes
    for_slots = memory_bytes * (USABLE_SHARE - VAULT_SHARE) - once
    return max(1, min(by_cores, int(for_slots // a_slot)))


def largest_case_bytes(tasks: Iterable[Task]) -> int:
    """Return the bytes of inputs and outputs of the largest case at `gpu` sizes, by the tasks' cost models.

    A task with a failing model counts with `USUAL_CASE_BYTES`, and so does an empty list.
    """
    sizes = [_case_bytes(task) for task in tasks]
    return max(sizes, default=USUAL_CASE_BYTES)


def own_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _case_bytes(task: Task) -> int:
    """Return the bytes that the task's largest case moves at `gpu` sizes; a usual number if the cost model fails."""
    try:
        costs = [task_cost(task, case.gpu, case.dtype) for case in task.cases]
        return max(max(cost.minimal_bytes, cost.moved_bytes) for cost in costs)
    except SuiteError:
        return USUAL_CASE_BYTES


def _memory_bytes(device: Device) -> int | None:
    """The memory that the driver reports, else the product's; `None` if neither is known."""
    if device.identity is not None and device.identity.memory_bytes:
        return device.identity.memory_bytes
    product = product_of(device).product
    return product.memory_bytes if product is not None else None
