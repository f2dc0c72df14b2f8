"""The judge: one candidate kernel in, one Evaluation out.

Every name is imported at first use: commands that neither judge nor read evaluations start without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.hardware.recognition import product_of
    from harness.hardware.targets import target, targets
    from harness.node.discovery import choose_devices, discover_devices
    from harness.processes.pool import DevicePool
    from harness.processes.probe import HarnessReport, probe
    from harness.stages.cascade import evaluate
    from harness.stages.oracle_strength import OracleReport, weigh_oracle
    from harness.wire.device import Device, Identity, Target
    from harness.wire.effort import ROUGH, Effort
    from harness.wire.errors import HarnessError, JudgeExtraMissing, UnknownDevice, UnknownTarget, WorkerDied
    from harness.wire.limits import TimeLimits
    from harness.wire.results.evaluation import (
        STAGES,
        Basis,
        ErrorReport,
        Estimate,
        Evaluation,
        Fact,
        Finding,
        KernelResources,
        Layer,
        Margin,
        Mismatch,
        Stage,
        StageEntered,
        StageLeft,
        Traffic,
        Verdict,
        Weakness,
    )
    from harness.wire.results.latency import DeviceState, Latency, Outcome, RoughTime, Timed

_MODULES = {
    "ROUGH": "wire.effort",
    "STAGES": "wire.results.evaluation",
    "Basis": "wire.results.evaluation",
    "Device": "wire.device",
    "DevicePool": "processes.pool",
    "DeviceState": "wire.results.latency",
    "Effort": "wire.effort",
    "ErrorReport": "wire.results.evaluation",
    "Estimate": "wire.results.evaluation",
    "Evaluation": "wire.results.evaluation",
    "Fact": "wire.results.evaluation",
    "Finding": "wire.results.evaluation",
    "HarnessError": "wire.errors",
    "HarnessReport": "processes.probe",
    "Identity": "wire.device",
    "JudgeExtraMissing": "wire.errors",
    "KernelResources": "wire.results.evaluation",
    "Latency": "wire.results.latency",
    "Layer": "wire.results.evaluation",
    "Margin": "wire.results.evaluation",
    "Mismatch": "wire.results.evaluation",
    "OracleReport": "stages.oracle_strength",
    "Outcome": "wire.results.latency",
    "RoughTime": "wire.results.latency",
    "Stage": "wire.results.evaluation",
    "StageEntered": "wire.results.evaluation",
    "StageLeft": "wire.results.evaluation",
    "Target": "wire.device",
    "TimeLimits": "wire.limits",
    "Timed": "wire.results.latency",
    "Traffic": "wire.results.evaluation",
    "UnknownDevice": "wire.errors",
    "UnknownTarget": "wire.errors",
    "Verdict": "wire.results.evaluation",
    "Weakness": "wire.results.evaluation",
    "WorkerDied": "wire.errors",
    "choose_devices": "node.discovery",
    "discover_devices": "node.discovery",
    "evaluate": "stages.cascade",
    "probe": "processes.probe",
    "product_of": "hardware.recognition",
    "target": "hardware.targets",
    "targets": "hardware.targets",
    "weigh_oracle": "stages.oracle_strength",
}

__all__ = [
    "ROUGH",
    "STAGES",
    "Basis",
    "Device",
    "DevicePool",
    "DeviceState",
    "Effort",
    "ErrorReport",
    "Estimate",
    "Evaluation",
    "Fact",
    "Finding",
    "HarnessError",
    "HarnessReport",
    "Identity",
    "JudgeExtraMissing",
    "KernelResources",
    "Latency",
    "Layer",
    "Margin",
    "Mismatch",
    "OracleReport",
    "Outcome",
    "RoughTime",
    "Stage",
    "StageEntered",
    "StageLeft",
    "Target",
    "TimeLimits",
    "Timed",
    "Traffic",
    "UnknownDevice",
    "UnknownTarget",
    "Verdict",
    "Weakness",
    "WorkerDied",
    "choose_devices",
    "discover_devices",
    "evaluate",
    "probe",
    "product_of",
    "target",
    "targets",
    "weigh_oracle",
]


def __getattr__(name: str) -> object:
    """Import a name; `AttributeError` for an unknown name."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
