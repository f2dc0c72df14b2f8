"""What can go wrong in the harness that is not the candidate's fault."""

from __future__ import annotations


class HarnessError(Exception):
    """Root of the harness's errors; each message names the thing and the next step."""


class JudgeExtraMissing(HarnessError):
    """torch or triton is not installed, so nothing can be judged here."""


class UnknownTarget(HarnessError):
    """No architecture of this name is known."""


class UnknownDevice(HarnessError):
    """No device of this name is on this machine."""


class WorkerDied(HarnessError):
    """A process of ours ended when it should not have."""


class LeaseUnavailable(HarnessError):
    """The leases of this node's GPUs cannot be kept."""


class DeviceFailed(WorkerDied):
    """A GPU does not pass its health probe, or did not meanwhile: nothing that was judged on it counts."""


class NoDeviceLeft(HarnessError):
    """Every GPU of the pool failed."""
