"""Errors of the harness that are not the candidate's fault, and why no call of a benchmark's test can be judged."""

from __future__ import annotations


class HarnessError(Exception):
    """Base of the harness's errors; each message names the problem and the next step."""


class JudgeExtraMissing(HarnessError):
    """torch or triton is not installed, so nothing can be judged here."""


class BadPython(HarnessError):
    """The interpreter that a person names cannot run the judge."""


class UnknownTarget(HarnessError):
    """No architecture of this name is known."""


class UnknownBaseline(HarnessError):
    """`--against` names nothing that a task can be timed against."""


class UnknownDevice(HarnessError):
    """No device of this name is on this machine."""


class NoIdleDevice(UnknownDevice):
    """Others use every GPU; `busy` says who."""

    def __init__(self, busy: str) -> None:
        super().__init__(
            f"no GPU is idle ({busy}); --devices all or 0,1 shares them, --devices cpu needs none"
        )
        self.busy = busy


class WorkerDied(HarnessError):
    """One of the harness's processes ended unexpectedly."""


class DeviceFull(WorkerDied):
    """One of the harness's processes ended because the GPU's memory was full."""


class LeaseUnavailable(HarnessError):
    """The leases of this node's GPUs cannot be used."""


class DeviceFailed(WorkerDied):
    """A GPU fails its health probe, so no result from it counts."""


class NoDeviceLeft(HarnessError):
    """Every GPU of the pool failed."""


def is_out_of_memory(message: str) -> bool:
    """Return whether an error message says that a device is full: of torch, of the driver, or of a vendor's library."""
    return "out of memory" in message or "ALLOC_FAILED" in message


class NotRecorded(Exception):
    """The task has no call that can be judged; the message says why."""


class NoReport(NotRecorded):
    """A process that runs a benchmark's text ended, or gave no report in time."""

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_slow = is_slow
