"""The judge: one candidate kernel in, one Evaluation out."""

from .device import Device, Target
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
    Traffic,
    Verdict,
)

__all__ = [
    "EVALUATION_DECODER",
    "STAGES",
    "Device",
    "ErrorReport",
    "Estimate",
    "Evaluation",
    "KernelResources",
    "Latency",
    "Layer",
    "Mismatch",
    "Stage",
    "Target",
    "Traffic",
    "Verdict",
]
