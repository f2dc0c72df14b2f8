"""What is known of one product: the numbers that efficiency is reckoned against, each with its source."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_NAMES = ("name", "target", "names", "partition", "sources")
"""Fields that are no published number."""


class Mode(msgspec.Struct, frozen=True):
    """A way to show one package as several devices."""

    name: str
    """Of the compute partitioning: `CPX`."""
    devices: int
    """Equal ones that a package shows as."""
    memory: tuple[int, ...]
    """Parts of the memory that go with it: 4 is `NPS4`."""


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """
    One device as a driver shows it: a GPU, a die of a package, or a partition of one.

    Peaks are the vendor's, dense (no structured sparsity), at the clock that its sheet names: few kernels come near.
    """

    name: str
    """As people read it; a partition's ends with its mode."""
    target: str
    """Architecture, as `gfx942`."""
    vendor_id: int
    device_ids: tuple[int, ...]
    """PCI device ids, those of virtual functions too."""
    names: tuple[str, ...]
    """Regular expressions, matched whole and without case, for the names that drivers use."""
    compute_units: int
    """Compute units (AMD) or streaming multiprocessors (NVIDIA)."""
    dies: int
    """Accelerator complex dies (XCDs) of the device; 1 where there is one."""
    boost_mhz: int
    """Of the sheet, and of its peaks."""
    matrix_mhz: int | None = None
    """The clock that the sheet's matrix peaks come out at, where that is lower than `boost_mhz`."""
    max_mhz: int | None = None
    """The highest clock that drivers allow, where that is above `boost_mhz`."""
    memory_bytes: int
    memory_bytes_per_s: float
    """Peak of device memory that this device can reach."""
    l2_bytes: int
    """Second-level cache, all dies together."""
    last_level_bytes: int
    """Memory-side cache behind it that this device can reach; 0 where there is none."""
    last_level_bytes_per_s: float | None = None
    """Peak of that cache, where it is published."""
    matrix_flops: dict[str, float]
    """Peak of the matrix units by the dtype of the operands, FLOPs (or integer operations) a second."""
    vector_flops: dict[str, float]
    half_accumulation: float = 1.0
    """How many times faster float16 and float8 products run when they are summed in float16."""
    achievable_flops: dict[str, float] = {}
    """What the vendor says its own libraries reach, by dtype."""
    achievable_bytes_per_s: float | None = None
    """What the vendor says a streaming kernel reaches."""
    power_w: int
    """Board or package power at its default cap."""
    package_devices: int = 1
    """Devices that share a package, its power cap and its memory: they are leased together."""
    modes: tuple[Mode, ...] = ()
    """Partition modes that the package knows; none where it knows none."""
    partition: str = ""
    """Of the device at hand: `CPX/NPS4`, `MIG 1g.18gb`; empty where it is whole."""
    sources: dict[str, str]
    """Where each number comes from, by field."""

    def matrix_peak(self, dtype: str) -> float | None:
        """FLOP/s of matrix products of this dtype, float32 by TF32 where that is faster; `None` where there are none."""
        return matrix_peak(self.matrix_flops, dtype)

    def vector_peak(self, dtype: str) -> float | None:
        """FLOP/s of other arithmetic: float64 has a peak of its own, narrower types are reckoned at float32's."""
        return vector_peak(self.vector_flops, dtype)


def numbers() -> tuple[str, ...]:
    """The fields of a product that are published facts, each of which needs a source where it says something."""
    return tuple(field for field in Product.__struct_fields__ if field not in _NAMES)


def matrix_peak(peaks: dict[str, float], dtype: str) -> float | None:
    """The peak of matrix products by a dtype's name as torch has it; `None` where the device has none."""
    if dtype in FLOAT8:
        return peaks.get("float8")
    if dtype == "float32":
        return max(peaks.get("float32", 0.0), peaks.get("tf32", 0.0)) or None
    return peaks.get(dtype)


def vector_peak(peaks: dict[str, float], dtype: str) -> float | None:
    """The peak of other arithmetic: only 64-bit floats have one of their own, narrower types run at float32's."""
    return peaks.get("float64" if dtype == "float64" else "float32")
