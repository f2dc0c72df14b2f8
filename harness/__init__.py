"""The judge: one candidate kernel in, one Evaluation out."""

from harness.hardware.product import Product
from harness.hardware.recognition import Recognised, product_of
from harness.hardware.targets import hardware, target, targets
from harness.node.discovery import choose_devices, discover_devices
from harness.processes.pool import DevicePool
from harness.processes.probe import HarnessReport, probe
from harness.stages.cascade import evaluate
from harness.stages.oracle_strength import OracleReport, weigh_oracle
from harness.stages.static.inspection import SLOW_IN_INTERPRETER
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
