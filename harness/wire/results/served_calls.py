"""Facts about a candidate's calls that serving needs, and the requirements of a task that they miss. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from suites.task import Task

REPEATS = 4
"""Calls on equal inputs; their bits are compared."""


class ServedCall(msgspec.Struct, frozen=True):
    """A candidate's call in one case on a GPU, with its own host code. The candidate's process reports it: evidence."""

    case: str
    host_us: float
    """Least time of five calls on an idle device until the host goes on; with the device's time if the host waits for it."""
    no_graph: str | None = None
    """Why no CUDA or HIP graph holds the call; empty if a graph holds it, `None` if memory was too small to try, and on AMD."""
    host_waits: bool | None = None
    """Whether the host waits for the device in the call; `None` if the host needs too long to find out."""
    same_bits: bool | None = None
    """Whether `REPEATS` calls on equal inputs gave equal bits; `None` if memory was too small to compare."""


class BatchRows(msgspec.Struct, frozen=True):
    """Rows of a large batch against the same rows in a call of their own, on a GPU. The judge compares them: proof."""

    case: str = ""
    axis: str = ""
    """The size that is the batch."""
    rows: int = 0
    of: int = 0
    same_bits: bool | None = None
    why_not: str = ""
    """Why nothing was compared, if `same_bits` is `None`."""

    @property
    def words(self) -> str:
        """`rows=1 alone and in rows=8192, case fp32`."""
        return f"{self.axis}={self.rows} alone and in {self.axis}={self.of}, case {self.case}"


def unmet_requirements(calls: Sequence[ServedCall], task: Task) -> Iterator[tuple[str, str]]:
    """Yield kind and message of each requirement of the task that a call misses.

    A fact that was not measured misses nothing; see `unchecked_requirements`.
    """
    for call in calls:
        if "no_graph" in task.strict and call.no_graph:
            yield (
                "no_graph",
                f"case {call.case}: no graph holds the call, and the task requires one: {call.no_graph}",
            )
        if "host_waits" in task.strict and call.host_waits:
            yield (
                "host_waits",
                f"case {call.case}: the host waits for the device, which the task forbids; leave out `.item()` and `synchronize()`",
            )
        if "not_deterministic" in task.strict and call.same_bits is False:
            yield (
                "not_deterministic",
                f"case {call.case}: {REPEATS} calls on equal inputs gave different bits; avoid atomics and races",
            )
        if task.max_host_us is not None and call.host_us > task.max_host_us:
            yield (
                "host_time",
                f"case {call.case}: the host needs {call.host_us:.4g} us for a call, the task allows {task.max_host_us:g} us",
            )


def unchecked_requirements(
    calls: Sequence[ServedCall], batches: Sequence[BatchRows], task: Task
) -> tuple[str, ...]:
    """Return the keys of the requirements that nothing measured, in at least one open case."""
    by_case = {call.case: call for call in calls}
    served = [by_case.get(case.name) for case in task.open_cases]
    unknown = {
        "no_graph": "no_graph" in task.strict
        and any(call is None or call.no_graph is None for call in served),
        "host_waits": "host_waits" in task.strict
        and any(call is None or call.host_waits is None for call in served),
        "not_deterministic": "not_deterministic" in task.strict
        and any(call is None or call.same_bits is None for call in served),
        "batch_dependent": "batch_dependent" in task.strict
        and all(batch.same_bits is None for batch in batches),
        "max_host_us": task.max_host_us is not None and None in served,
    }
    return tuple(name for name, is_unknown in unknown.items() if is_unknown)
