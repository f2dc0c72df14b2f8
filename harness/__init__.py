"""The judge: one candidate kernel in, one Evaluation out."""

from .cascade import evaluate
from .device import Device, Identity, Target
from .devices import choose_devices, discover_devices
from .effort import ROUGH, WHOLE, WITH_ENERGY, Effort
from .errors import HarnessError, JudgeExtraMissing, UnknownDevice, UnknownTarget, WorkerDied
from .evaluation import (
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
from .latency import DeviceState, Efficiency, Latency, Outcome, RoughTime, Timed, Window
from .limits import TimeLimits
from .pool import DevicePool
from .probe import HarnessReport, probe
from .product import Product
from .products import Recognised, product_of
from .static import SLOW_IN_INTERPRETER
from .strength import OracleReport, weigh_oracle
from .targets import hardware, target, targets

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
