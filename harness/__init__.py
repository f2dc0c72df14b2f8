"""The judge: one candidate kernel in, one Evaluation out."""

from .cascade import evaluate
from .device import Device, Target
from .devices import discover_devices
from .errors import HarnessError, JudgeExtraMissing, UnknownDevice, UnknownTarget, WorkerDied
from .evaluation import (
    EVALUATION_DECODER,
    STAGES,
    ErrorReport,
    Estimate,
    Evaluation,
    KernelResources,
    Latency,
    Layer,
    Mismatch,
    Stage,
    StageEntered,
    StageLeft,
    Traffic,
    Verdict,
)
from .pool import DevicePool
from .probe import HarnessReport, probe
from .targets import hardware, target, targets

__all__ = [
    "EVALUATION_DECODER",
    "STAGES",
    "Device",
    "DevicePool",
    "ErrorReport",
    "Estimate",
    "Evaluation",
    "HarnessError",
    "HarnessReport",
    "JudgeExtraMissing",
    "KernelResources",
    "Latency",
    "Layer",
    "Mismatch",
    "Stage",
    "StageEntered",
    "StageLeft",
    "Target",
    "Traffic",
    "UnknownDevice",
    "UnknownTarget",
    "Verdict",
    "WorkerDied",
    "discover_devices",
    "evaluate",
    "hardware",
    "probe",
    "target",
    "targets",
]
