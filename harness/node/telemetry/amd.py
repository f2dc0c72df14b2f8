"""Reads an AMD GPU by `amdsmi`, found by its PCI address.

Only for a process of its own: on ROCm the library disturbs torch. Shapes of its answers: amdsmi 6.1 to 7.0,
`amdsmi_interface.py`. An unknown value is `N/A`, or the largest number of its type.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from harness.wire.results.provenance import Provenance

from .reading import Occupant, Reading, SourceUnavailable, number, whole

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
    """One AMD GPU. `SourceUnavailable` if library or driver are missing, or do not know the address."""

    name = "amdsmi"

    def __init__(self, address: str, library: ModuleType | None = None) -> None:
        self._smi: Any = _load_library() if library is None else library
        self._address = address
        try:
            self._smi.amdsmi_init()
            handles = {
                str(self._smi.amdsmi_get_gpu_device_bdf(handle)).lower(): handle
                for handle in self._smi.amdsmi_get_processor_handles()
            }
        except self._smi.AmdSmiException as error:
            raise SourceUnavailable(f"amdsmi cannot read the GPU at {address}: {error}") from None
        if address not in handles:
            raise SourceUnavailable(f"amdsmi knows no GPU at {address}")
        self._handle = handles[address]

    def read(self) -> Reading:
        """Return one reading of the GPU. A figure that the library does not give stays `None`. See `Source`."""
        reading = Reading(at_s=time.monotonic())
        metrics = self._ask(self._smi.amdsmi_get_gpu_metrics_info) or {}
        reading.clock_mhz = lowest_clock(metrics)
        reading.busy_percent = known(metrics.get("average_gfx_activity"))
        reading.idle = reading.busy_percent == 0
        reading.hotspot_c = known(metrics.get("temperature_hotspot"))
        reading.memory_c = known(metrics.get("temperature_mem"))
        reading.power_w = power(metrics)
        counters = {reason: known(metrics.get(name)) for name, reason in VIOLATIONS.items()}
        reading.counters = {reason: int(count) for reason, count in counters.items() if count is not None}
        reading.ticks = whole(known(metrics.get("accumulation_counter")))
        reading.memory_used_bytes, reading.memory_total_bytes = self._memory()
        return reading

    def provenance(self) -> Provenance:
        """Return what identifies the GPU and its driver; empty or `None` what the library does not give. See `Source`."""
        smi = self._smi
        modes = (smi.amdsmi_get_gpu_compute_partition, smi.amdsmi_get_gpu_memory_partition)
        asic = self._ask(smi.amdsmi_get_gpu_asic_info) or {}
        driver = self._ask(smi.amdsmi_get_gpu_driver_info) or {}
        bios = self._ask(smi.amdsmi_get_gpu_vbios_info) or {}
        clock = self._ask(smi.amdsmi_get_clock_info, smi.AmdSmiClkType.GFX) or {}
        return Provenance(
            product=_text(asic.get("market_name")),
            partition="/".join(filter(None, (_text(self._ask(mode)) for mode in modes))),
            address=self._address,
            driver=_text(driver.get("driver_version")),
            firmware=_text(bios.get("version")),
            max_clock_mhz=whole(known(clock.get("max_clk"))),
            power_cap_w=watts((self._ask(smi.amdsmi_get_power_cap_info) or {}).get("power_cap")),
        )

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Return the processes that have the device open for compute; `None` if unknown."""
        processes = self._ask(self._smi.amdsmi_get_gpu_process_list)
        if processes is None:
            return None
        return tuple(
            Occupant(int(process["pid"]), whole(process.get("memory_usage", {}).get("vram_mem")))
            for process in processes
            if isinstance(process, Mapping) and process.get("pid")
        )

    def _memory(self) -> tuple[int | None, int | None]:
        """Used and total bytes; the library reports MiB."""
        usage = self._ask(self._smi.amdsmi_get_gpu_vram_usage) or {}
        used, total = (whole(usage.get(name)) for name in ("vram_used", "vram_total"))
        return (None if used is None else used << 20), (None if total is None else total << 20)

    def _ask(self, function: Callable[..., Any], *arguments: object) -> Any:
        """The function's answer; `None` if this device, driver or guest system does not support it."""
        try:
            return function(self._handle, *arguments)
        except self._smi.AmdSmiException:
            return None


def _load_library() -> Any:
    """Import amdsmi. Without its shared object it prints to standard output, which carries our replies, and raises KeyError."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module("amdsmi")
    except (ImportError, KeyError, OSError, AttributeError):
        raise SourceUnavailable(
            "amdsmi does not load: install ROCm's (pip install /opt/rocm/share/amd_smi) or 'wavedeck[amd]'"
        ) from None


def _text(value: object) -> str:
    return "" if value in (None, "", "N/A") else str(value)


def known(value: object) -> float | None:
    """Return a number; `None` for the numbers that mean "unknown"."""
    return None if isinstance(value, int) and value in _LARGEST else number(value)


def lowest_clock(metrics: Mapping[str, object]) -> int | None:
    """Return the lowest gfx clock in MHz. An MI300X has eight, one per die; a missing die reports 0 or nothing."""
    by_die = metrics.get("current_gfxclks")
    clocks = [clock for clock in map(known, by_die) if clock] if isinstance(by_die, (list, tuple)) else []
    lowest = min(clocks, default=known(metrics.get("current_gfxclk")))
    return int(lowest) if lowest else None


def power(metrics: Mapping[str, object]) -> float | None:
    """Return the socket's power in W: the current power on MI300, an average on MI200."""
    current = known(metrics.get("current_socket_power"))
    return known(metrics.get("average_socket_power")) if current is None else current


def watts(value: object) -> float | None:
    """Return a power cap in W. Some releases report microwatts; no GPU draws 100 kW."""
    cap = known(value)
    return cap / 1e6 if cap is not None and cap > 100_000 else cap
