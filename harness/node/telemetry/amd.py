"""An AMD GPU by `amdsmi`, found by its address on the PCI bus.

Only for a process of its own: on ROCm the library disturbs torch. Shapes of the answers: amdsmi 6.1 to 7.0,
`amdsmi_interface.py`; what it does not know it calls `N/A`, or gives as the largest number of its type.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from harness.wire.latency import DeviceState

from .reading import NotTold, Occupant, Reading, number, whole

_LARGEST = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
VIOLATIONS = {
    "prochot_residency_acc": "processor hot",
    "ppt_residency_acc": "power cap",
    "socket_thm_residency_acc": "heat",
    "vr_thm_residency_acc": "heat of the regulators",
    "hbm_thm_residency_acc": "heat of the memory",
}
"""Accumulators of the GPU metrics; each grows with `accumulation_counter` while its cause holds the clock back.

`amdsmi_get_violation_status` reads the same ones, but sleeps between two readings of its own.
"""


class AmdSmi:
    """One AMD GPU. `NotTold` where library or driver are not here, or the address is unknown to them."""

    name = "amdsmi"

    def __init__(self, address: str, library: ModuleType | None = None) -> None:
        self._smi: Any = _library() if library is None else library
        self._address = address
        try:
            self._smi.amdsmi_init()
            handles = self._smi.amdsmi_get_processor_handles()
            found = [
                one for one in handles if str(self._smi.amdsmi_get_gpu_device_bdf(one)).lower() == address
            ]
        except self._smi.AmdSmiException as error:
            raise NotTold(f"amdsmi does not tell of the GPU at {address}: {error}") from None
        if not found:
            raise NotTold(f"amdsmi knows no GPU at {address}")
        self._handle = found[0]

    def read(self) -> Reading:
        """Everything that can be read quickly."""
        reading = Reading(at_s=time.monotonic())
        metrics = self._ask(self._smi.amdsmi_get_gpu_metrics_info) or {}
        reading.clock_mhz = lowest_clock(metrics)
        reading.idle = known(metrics.get("average_gfx_activity")) == 0
        reading.hotspot_c = known(metrics.get("temperature_hotspot"))
        reading.memory_c = known(metrics.get("temperature_mem"))
        reading.power_w = power(metrics)
        reading.energy_j = joules(self._ask(self._smi.amdsmi_get_energy_count) or {})
        reading.counters = {
            words: int(value)
            for name, words in VIOLATIONS.items()
            if (value := known(metrics.get(name))) is not None
        }
        reading.ticks = whole(known(metrics.get("accumulation_counter")))
        reading.memory_used_bytes = self._memory()[0]
        return reading

    def state(self) -> DeviceState:
        """What the device is, and how it is."""
        smi = self._smi
        metrics = self._ask(smi.amdsmi_get_gpu_metrics_info) or {}
        used, total = self._memory()
        modes = (
            self._ask(smi.amdsmi_get_gpu_compute_partition),
            self._ask(smi.amdsmi_get_gpu_memory_partition),
        )
        product = (self._ask(smi.amdsmi_get_gpu_asic_info) or {}).get("market_name", "")
        driver = (self._ask(smi.amdsmi_get_gpu_driver_info) or {}).get("driver_version", "")
        return DeviceState(
            product="" if product == "N/A" else str(product),
            address=self._address,
            driver="" if driver == "N/A" else str(driver),
            partition="/".join(str(mode) for mode in modes if mode and mode != "N/A"),
            power_cap_w=watts((self._ask(smi.amdsmi_get_power_cap_info) or {}).get("power_cap")),
            busy_percent=known(metrics.get("average_gfx_activity")),
            memory_used_bytes=used,
            memory_total_bytes=total,
            clock_mhz=lowest_clock(metrics),
            hotspot_c=known(metrics.get("temperature_hotspot")),
            power_w=power(metrics),
        )

    def _memory(self) -> tuple[int | None, int | None]:
        """Bytes used and of the whole device; the library tells MiB."""
        found = self._ask(self._smi.amdsmi_get_gpu_vram_usage) or {}
        used, total = (number(found.get(name)) for name in ("vram_used", "vram_total"))
        return (None if used is None else int(used) << 20), (None if total is None else int(total) << 20)

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Processes that have the device open for compute."""
        found = self._ask(self._smi.amdsmi_get_gpu_process_list)
        if found is None:
            return None
        return tuple(
            Occupant(int(each["pid"]), whole(each.get("memory_usage", {}).get("vram_mem")))
            for each in found
            if isinstance(each, Mapping) and each.get("pid")
        )

    def _ask(self, asked: Callable[..., Any]) -> Any:
        """What a call answers; `None` where this device, driver or guest system does not support it."""
        try:
            return asked(self._handle)
        except self._smi.AmdSmiException:
            return None


def _library() -> Any:
    """Imported quietly: without its shared object it prints to standard output, which is ours, and raises KeyError."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module("amdsmi")
    except (ImportError, KeyError, OSError, AttributeError):
        raise NotTold(
            "amdsmi does not load: install ROCm's (pip install /opt/rocm/share/amd_smi) or 'wavedeck[amd]'"
        ) from None


def known(value: object) -> float | None:
    """A number that is none of those that stand for no number."""
    return None if isinstance(value, int) and value in _LARGEST else number(value)


def lowest_clock(metrics: Mapping[str, object]) -> int | None:
    """Of all gfx clocks (eight on an MI300X, one a die), MHz; those of dies that are not there are 0 or not told."""
    clocks = metrics.get("current_gfxclks")
    found = [known(each) for each in clocks] if isinstance(clocks, (list, tuple)) else []
    told = [each for each in found if each]
    if not told:
        single = known(metrics.get("current_gfxclk"))
        told = [single] if single else []
    return int(min(told)) if told else None


def power(metrics: Mapping[str, object]) -> float | None:
    """Of the socket, W: MI300 tells what it draws now, MI200 an average."""
    told = known(metrics.get("current_socket_power"))
    return known(metrics.get("average_socket_power")) if told is None else told


def joules(energy: Mapping[str, object]) -> float | None:
    """The energy counter; its resolution is in microjoules."""
    count = known(energy.get("energy_accumulator", energy.get("power")))
    resolution = number(energy.get("counter_resolution"))
    return None if count is None or not resolution else count * resolution / 1e6


def watts(value: object) -> float | None:
    """A power cap: some releases tell W, others microwatts; no GPU draws 100 kW."""
    found = known(value)
    if found is None:
        return None
    return found / 1e6 if found > 100_000 else found
