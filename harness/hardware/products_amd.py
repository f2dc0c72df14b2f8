"""AMD Instinct products: published facts alone, by field and source. No AMD GPU was used to check them."""

from __future__ import annotations

from .product import GIB, MIB, Mode, Product, sourced, tera

AMD = 0x1002
PCI_IDS = "pci.ids (pciutils) and amdgpu.ids (libdrm)"
ROCM_SPECS = "ROCm documentation, AMD GPU specifications"
CDNA3_PAPER = "AMD CDNA 3 white paper"
PARTITIONS = "AMD Instinct documentation, GPU partitioning; amdgpu driver, aqua_vanjaram.c"
MAF = "AMD ROCm blog, Measuring Max-Achievable FLOPs, part 2, table 1 (28 February 2025)"
ACCEPTANCE = "AMD MI300X acceptance test: BabelStream Copy that a sound GPU must reach (4,177,285 MB/s)"
MI300X_SHEET = "AMD Instinct MI300X data sheet"
MI325X_SHEET = "AMD Instinct MI325X data sheet"
MI300A_SHEET = "AMD Instinct MI300A data sheet"
MI355X_SHEET = "AMD Instinct MI355X data sheet"
MI250X_SHEET = "AMD Instinct MI250X data sheet, halved: a device is one of the package's two dies"
MI210_SHEET = "AMD Instinct MI210 data sheet"

_WITH_CACHES = {
    "vendor_id": PCI_IDS,
    "device_ids": PCI_IDS,
    "compute_units": ROCM_SPECS,
    "dies": ROCM_SPECS,
    "l2_bytes": ROCM_SPECS,
    "last_level_bytes": ROCM_SPECS,
}
_EIGHT_DIES = (
    Mode(name="SPX", devices=1, memory=(1,)),
    Mode(name="DPX", devices=2, memory=(1, 2)),
    Mode(name="QPX", devices=4, memory=(1, 4)),
    Mode(name="CPX", devices=8, memory=(1, 2, 4)),
)
_CDNA3_MATRIX = tera(
    float64=163.4, float32=163.4, tf32=653.7, float16=1307.4, bfloat16=1307.4, float8=2614.9, int8=2614.9
)
_CDNA3_VECTOR = tera(float64=81.7, float32=163.4)
_INFINITY_CACHE_BYTES_PER_S = 17.2e12

MI300X = Product(
    name="MI300X",
    target="gfx942",
    vendor_id=AMD,
    device_ids=(0x74A1, 0x74B5),
    names=(r"(AMD )?(Instinct )?MI300X( OAM| VF)?",),
    compute_units=304,
    dies=8,
    boost_mhz=2100,
    memory_bytes=192 * GIB,
    memory_bytes_per_s=5.3 * 1e12,
    l2_bytes=32 * MIB,
    last_level_bytes=256 * MIB,
    last_level_bytes_per_s=_INFINITY_CACHE_BYTES_PER_S,
    matrix_flops=_CDNA3_MATRIX,
    vector_flops=_CDNA3_VECTOR,
    achievable_flops=tera(float16=654, bfloat16=708, float8=1273),
    achievable_bytes_per_s=4.177285e12,
    power_w=750,
    modes=_EIGHT_DIES,
    sources=sourced(
        sheet=MI300X_SHEET,
        **_WITH_CACHES,
        last_level_bytes_per_s=CDNA3_PAPER,
        achievable_flops=MAF,
        achievable_bytes_per_s=ACCEPTANCE,
        modes=PARTITIONS,
    ),
)

MI325X = Product(
    name="MI325X",
    target="gfx942",
    vendor_id=AMD,
    device_ids=(0x74A5, 0x74B9),
    names=(r"(AMD )?(Instinct )?MI325X( OAM| VF)?",),
    compute_units=304,
    dies=8,
    boost_mhz=2100,
    memory_bytes=256 * GIB,
    memory_bytes_per_s=6.0 * 1e12,
    l2_bytes=32 * MIB,
    last_level_bytes=256 * MIB,
    last_level_bytes_per_s=_INFINITY_CACHE_BYTES_PER_S,
    matrix_flops=_CDNA3_MATRIX,
    vector_flops=_CDNA3_VECTOR,
    achievable_flops=tera(float16=794, bfloat16=843, float8=1519),
    power_w=1000,
    modes=_EIGHT_DIES,
    sources=sourced(
        sheet=MI325X_SHEET,
        **_WITH_CACHES,
        last_level_bytes_per_s=f"{CDNA3_PAPER}, of the MI300X: the same cache",
        achievable_flops=MAF,
        modes=PARTITIONS,
    ),
)

MI300A = Product(
    name="MI300A",
    target="gfx942",
    vendor_id=AMD,
    device_ids=(0x74A0,),
    names=(r"(AMD )?(Instinct )?MI300A",),
    compute_units=228,
    dies=6,
    boost_mhz=2100,
    memory_bytes=128 * GIB,
    memory_bytes_per_s=5.3 * 1e12,
    l2_bytes=24 * MIB,
    last_level_bytes=256 * MIB,
    last_level_bytes_per_s=_INFINITY_CACHE_BYTES_PER_S,
    matrix_flops=tera(
        float64=122.6, float32=122.6, tf32=490.3, float16=980.6, bfloat16=980.6, float8=1961.2, int8=1961.2
    ),
    vector_flops=tera(float64=61.3, float32=122.6),
    power_w=550,
    modes=(
        Mode(name="SPX", devices=1, memory=(1,)),
        Mode(name="TPX", devices=3, memory=(1,)),
        Mode(name="CPX", devices=6, memory=(1,)),
    ),
    sources=sourced(sheet=MI300A_SHEET, **_WITH_CACHES, last_level_bytes_per_s=CDNA3_PAPER, modes=PARTITIONS),
)

MI355X = Product(
    name="MI355X",
    target="gfx950",
    vendor_id=AMD,
    device_ids=(0x75A3, 0x75B3),
    names=(r"(AMD )?(Instinct )?MI355X( OAM| VF)?",),
    compute_units=256,
    dies=8,
    boost_mhz=2400,
    memory_bytes=288 * GIB,
    memory_bytes_per_s=8.0 * 1e12,
    l2_bytes=32 * MIB,
    last_level_bytes=256 * MIB,
    matrix_flops=tera(
        float64=78.6, float32=157.3, float16=2516.6, bfloat16=2516.6, float8=5033.2, int8=5033.2
    ),
    vector_flops=tera(float64=78.6, float32=157.3),
    power_w=1400,
    modes=(
        Mode(name="SPX", devices=1, memory=(1,)),
        Mode(name="DPX", devices=2, memory=(1, 2)),
        Mode(name="QPX", devices=4, memory=(1, 2)),
        Mode(name="CPX", devices=8, memory=(1, 2)),
    ),
    sources=sourced(sheet=MI355X_SHEET, **_WITH_CACHES, modes=PARTITIONS),
)

MI250X = Product(
    name="MI250X (one die)",
    target="gfx90a",
    vendor_id=AMD,
    device_ids=(0x7408, 0x740C),
    names=(r"(AMD )?(Instinct )?MI250X( ?/ ?MI250)?( OAM)?",),
    compute_units=110,
    dies=1,
    boost_mhz=1700,
    memory_bytes=64 * GIB,
    memory_bytes_per_s=1.6384 * 1e12,
    l2_bytes=8 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(float64=47.85, float32=47.85, float16=191.5, bfloat16=191.5, int8=191.5),
    vector_flops=tera(float64=23.95, float32=23.95),
    power_w=560,
    package_devices=2,
    sources=sourced(
        sheet=MI250X_SHEET, **_WITH_CACHES, power_w="AMD Instinct MI250X data sheet, of the package"
    ),
)

MI210 = Product(
    name="MI210",
    target="gfx90a",
    vendor_id=AMD,
    device_ids=(0x740F,),
    names=(r"(AMD )?(Instinct )?MI210",),
    compute_units=104,
    dies=1,
    boost_mhz=1700,
    memory_bytes=64 * GIB,
    memory_bytes_per_s=1.6384 * 1e12,
    l2_bytes=8 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(float64=45.3, float32=45.3, float16=181.0, bfloat16=181.0, int8=181.0),
    vector_flops=tera(float64=22.6, float32=22.6),
    power_w=300,
    sources=sourced(sheet=MI210_SHEET, **_WITH_CACHES),
)

AMD_PRODUCTS = (MI300X, MI325X, MI355X, MI300A, MI250X, MI210)
