"""The judge: one candidate kernel in, one Evaluation out.

Names that judge are imported at first use: readers of evaluations start in half the time without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from harness.hardware.product import Product
from harness.hardware.recognition import Recognised, product_of
from harness.hardware.targets import hardware, target, targets
from harness.wire.device import Device, Identity, Target
from harness.wire.effort import ROUGH, WHOLE, WITH_ENERGY, Effort
from harness.wire.errors import HarnessError, JudgeExtraMissing, UnknownDevice, UnknownTarget, WorkerDied
from harness.wire.evaluation import (
    EVALUATION_DECODER,
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
from harness.wire.latency import DeviceState, Efficiency, Latency, Outcome, RoughTime, Timed, Window
from harness.wire.limits import TimeLimits

if TYPE_CHECKING:
    from harness.node.discovery import choose_devices, discover_devices
    from harness.processes.pool import DevicePool
    from harness.processes.probe import HarnessReport, probe
    from harness.stages.cascade import evaluate
    from harness.stages.oracle_strength import OracleReport, weigh_oracle
    from harness.stages.static.inspection import SLOW_IN_INTERPRETER

_JUDGING = {
    "DevicePool": "processes.pool",
    "HarnessReport": "processes.probe",
    "OracleReport": "stages.oracle_strength",
    "SLOW_IN_INTERPRETER": "stages.static.inspection",
    "choose_devices": "node.discovery",
    "discover_devices": "node.discovery",
    "evaluate": "stages.cascade",
    "probe": "processes.probe",
    "weigh_oracle": "stages.oracle_strength",
}

__all__ = [
    "EVALUATION_DECODER",
    "ROUGH",
    "SLOW_IN_INTERPRETER",
    "STAGES",
    "WHOLE",
    "WITH_ENERGY",
    "Basis",
    "Device",
    "DevicePool",
    "DeviceState",
    "Efficiency",
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
    "Product",
    "Recognised",
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
    "Window",
    "WorkerDied",
    "choose_devices",
    "discover_devices",
    "evaluate",
    "hardware",
    "probe",
    "product_of",
    "target",
    "targets",
    "weigh_oracle",
]


def __getattr__(name: str) -> object:
    """Import a name that judges; `AttributeError` for an unknown name."""
    module = _JUDGING.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
