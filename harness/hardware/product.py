"""The published numbers of one product, each with its source; efficiency is calculated from them."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


class PartitionMode(msgspec.Struct, frozen=True):
    """A partition mode: one package is shown as several devices."""

    name: str
    """Name of the compute partition mode: `CPX`."""
    devices: int
    """Number of equal devices per package."""
    memory: tuple[int, ...]
    """Possible numbers of memory partitions: 4 is `NPS4`."""


class Product(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device as a driver shows it: a GPU, a die of a package, or a partition of one.

    Peaks are the vendor's, dense (no structured sparsity), at the clock in its data sheet; few kernels come close.
    """

    name: str
    """The name to show; a partition's name ends with its mode."""
    target: str
    """Architecture: `gfx942`, for example."""
    vendor_id: int
    device_ids: tuple[int, ...]
    """PCI device ids, including those of virtual functions."""
    names: tuple[str, ...]
    """Regular expressions for the driver's names, matched whole and without case."""
    compute_units: int
    """Compute units (AMD) or streaming multiprocessors (NVIDIA)."""
    dies: int = 1
    """Accelerator complex dies (XCDs) of the device."""
    boost_mhz: int
    """The clock of the sheet's peaks."""
    matrix_mhz: int | None = None
    """The clock of the sheet's matrix peaks, if lower than `boost_mhz`."""
    memory_bytes: int
    memory_bytes_per_s: float
    """Peak of device memory that this device can reach."""
    l2_bytes: int
    """Second-level cache, all dies together."""
    last_level_bytes: int = 0
    """Memory-side cache behind it that this device can reach; 0 if there is none."""
    last_level_bytes_per_s: float | None = None
    """Peak of that cache, if published."""
    matrix_flops: dict[str, float]
    """Peaks of the matrix units by operand dtype, in FLOPs (or integer operations) per second."""
    vector_flops: dict[str, float]
    achievable_flops: dict[str, float] = {}
    """Published FLOPs per second of the vendor's own libraries, by dtype."""
    achievable_bytes_per_s: float | None = None
    """Published bandwidth of a streaming kernel."""
    power_w: int
    """Board or package power at its default cap."""
    modes: tuple[PartitionMode, ...] = ()
    """Partition modes of the package."""
    partition: str = ""
    """The partition that this is: `CPX/NPS4`, `MIG 1g.18gb`; empty for a whole device."""
    sources: dict[str, str]
    """Source of each number, by field."""

    def peak(self, dtype: str, *, matrix: bool) -> float | None:
        """Return the peak FLOP/s of matrix products, or of all other arithmetic, of this torch dtype; `None` if there is none."""
        return matrix_peak(self.matrix_flops, dtype) if matrix else vector_peak(self.vector_flops, dtype)


def matrix_peak(peaks: dict[str, float], dtype: str) -> float | None:
    """Return the peak FLOP/s of matrix products by torch dtype, float32 by TF32 if that is faster; `None` if there is none."""
    if dtype in FLOAT8:
        return peaks.get("float8")
    if dtype == "float32":
        return max(peaks.get("float32", 0.0), peaks.get("tf32", 0.0)) or None
    return peaks.get(dtype)


def vector_peak(peaks: dict[str, float], dtype: str) -> float | None:
    """Return the peak FLOP/s of all other arithmetic: float64 has its own, narrower types run at float32's."""
    return peaks.get("float64" if dtype == "float64" else "float32")
