"""Errors of the harness that are not the candidate's fault."""

from __future__ import annotations


class HarnessError(Exception):
    """Base of the harness's errors; each message names the problem and the next step."""


class JudgeExtraMissing(HarnessError):
    """torch or triton is not installed, so nothing can be judged here."""


class UnknownTarget(HarnessError):
    """No architecture of this name is known."""


class UnknownDevice(HarnessError):
    """No device of this name is on this machine."""


class WorkerDied(HarnessError):
    """One of the harness's processes ended unexpectedly."""


class LeaseUnavailable(HarnessError):
    """The leases of this node's GPUs cannot be used."""


class DeviceFailed(WorkerDied):
    """A GPU fails its health probe, so no result from it counts."""


class NoDeviceLeft(HarnessError):
    """Every GPU of the pool failed."""
