"""The judge: one candidate kernel in, one Evaluation out.

Every name is imported at first use: commands that neither judge nor read evaluations start without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.hardware.recognition import product_of as product_of
    from harness.hardware.targets import target as target
    from harness.node.discovery import choose_devices as choose_devices
    from harness.node.discovery import discover_devices as discover_devices
    from harness.processes.pool import DevicePool as DevicePool
    from harness.processes.probe import HarnessReport as HarnessReport
    from harness.processes.probe import probe as probe
    from harness.stages.cascade import evaluate as evaluate
    from harness.stages.oracle_strength import OracleReport as OracleReport
    from harness.stages.oracle_strength import weigh_oracle as weigh_oracle
    from harness.wire.device import Device as Device
    from harness.wire.device import Identity as Identity
    from harness.wire.device import Target as Target
    from harness.wire.errors import HarnessError as HarnessError
    from harness.wire.errors import JudgeExtraMissing as JudgeExtraMissing
    from harness.wire.errors import WorkerDied as WorkerDied
    from harness.wire.limits import TimeLimits as TimeLimits
    from harness.wire.messages.clock import ROUGH as ROUGH
    from harness.wire.messages.clock import Effort as Effort
    from harness.wire.results.evaluation import STAGES as STAGES
    from harness.wire.results.evaluation import Basis as Basis
    from harness.wire.results.evaluation import ErrorReport as ErrorReport
    from harness.wire.results.evaluation import Evaluation as Evaluation
    from harness.wire.results.evaluation import Fact as Fact
    from harness.wire.results.evaluation import Finding as Finding
    from harness.wire.results.evaluation import KernelResources as KernelResources
    from harness.wire.results.evaluation import Layer as Layer
    from harness.wire.results.evaluation import Margin as Margin
    from harness.wire.results.evaluation import Mismatch as Mismatch
    from harness.wire.results.evaluation import Stage as Stage
    from harness.wire.results.evaluation import StageEvent as StageEvent
    from harness.wire.results.evaluation import Traffic as Traffic
    from harness.wire.results.evaluation import Verdict as Verdict
    from harness.wire.results.latency import Latency as Latency
    from harness.wire.results.latency import Outcome as Outcome

_NAMES = {
    "hardware.recognition": "product_of",
    "hardware.targets": "target",
    "node.discovery": "choose_devices discover_devices",
    "processes.pool": "DevicePool",
    "processes.probe": "HarnessReport probe",
    "stages.cascade": "evaluate",
    "stages.oracle_strength": "OracleReport weigh_oracle",
    "wire.device": "Device Identity Target",
    "wire.errors": "HarnessError JudgeExtraMissing WorkerDied",
    "wire.limits": "TimeLimits",
    "wire.messages.clock": "Effort ROUGH",
    "wire.results.evaluation": "Basis ErrorReport Evaluation Fact Finding KernelResources Layer Margin Mismatch STAGES "
    "Stage StageEvent Traffic Verdict",
    "wire.results.latency": "Latency Outcome",
}
"""Public names by module."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Import a name; `AttributeError` for an unknown name."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
