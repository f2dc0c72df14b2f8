"""NVIDIA products: published facts alone, by field and source. Dense peaks; float16 summed in float32."""

from __future__ import annotations

from .product import MIB, Product, sourced, tera

NVIDIA = 0x10DE
PCI_IDS = "pci.ids (pciutils)"
A100_SHEET = "NVIDIA A100 data sheet"
A100_PAPER = "NVIDIA A100 Tensor Core GPU architecture white paper"
H100_SHEET = "NVIDIA H100 data sheet, SXM5"
H100_PCIE_SHEET = "NVIDIA H100 data sheet, PCIe"
H100_PAPER = "NVIDIA H100 Tensor Core GPU architecture white paper"
H200_SHEET = "NVIDIA H200 data sheet, SXM"
H800_LISTING = "NVIDIA H800 SXM as resellers list it: an H100 SXM5 but for float64 and NVLink"
H20_LISTING = "NVIDIA H20 as resellers list it; NVIDIA has no public sheet"
L20_LISTING = "NVIDIA L20 as resellers list it; NVIDIA has no public sheet"
L40S_SHEET = "NVIDIA L40S data sheet"
ADA_PAPER = "NVIDIA Ada GPU architecture white paper, appendix"
BLACKWELL_PAPER = "NVIDIA RTX Blackwell GPU architecture white paper, appendix"
B200_SHEET = "NVIDIA HGX B200 data sheet, an eighth of the board"
MAX_CLOCKS = "nvidia-smi -q -d CLOCK (max graphics clock) as users publish it"
SIX_STACKS = "CUDA device properties as users publish them: 10 MiB a memory stack, six stacks"

_IDS = {"vendor_id": PCI_IDS, "device_ids": PCI_IDS}
_HOPPER_MATRIX = tera(float64=66.9, tf32=494.7, float16=989.4, bfloat16=989.4, float8=1978.9, int8=1978.9)
_HOPPER_VECTOR = tera(float64=33.5, float32=66.9)
_AMPERE_MATRIX = tera(float64=19.5, tf32=156, float16=312, bfloat16=312, int8=624)
_AMPERE_VECTOR = tera(float64=9.7, float32=19.5)


def _matrix_clock(sheet: str, mhz: int) -> str:
    return f"worked out from {sheet}: its float16 peak over multiprocessors and FLOPs a clock is {mhz} MHz"


def _a100(
    *, name: str, device_ids: tuple[int, ...], pattern: str, memory_gb: int, tb_per_s: float, power_w: int
) -> Product:
    return Product(
        name=name,
        target="sm_80",
        vendor_id=NVIDIA,
        device_ids=device_ids,
        names=(rf"(NVIDIA )?{pattern}",),
        compute_units=108,
        dies=1,
        boost_mhz=1410,
        memory_bytes=memory_gb * 10**9,
        memory_bytes_per_s=tb_per_s * 1e12,
        l2_bytes=40 * MIB,
        last_level_bytes=0,
        matrix_flops=_AMPERE_MATRIX,
        vector_flops=_AMPERE_VECTOR,
        power_w=power_w,
        sources=sourced(sheet=A100_SHEET, **_IDS),
    )


A100_SXM_80 = _a100(
    name="A100 SXM 80 GB",
    device_ids=(0x20B2,),
    pattern="A100[- ]SXM4?[- ]80GB",
    memory_gb=80,
    tb_per_s=2.039,
    power_w=400,
)
A100_SXM_40 = _a100(
    name="A100 SXM 40 GB",
    device_ids=(0x20B0,),
    pattern="A100[- ]SXM4?[- ]40GB",
    memory_gb=40,
    tb_per_s=1.555,
    power_w=400,
)
A100_PCIE_80 = _a100(
    name="A100 PCIe 80 GB", device_ids=(0x20B5,), pattern="A100[- ](80GB[- ]PCIE|PCIE[- ]80GB)", memory_gb=80,
    tb_per_s=1.935, power_w=300,
)  # fmt: skip
A100_PCIE_40 = _a100(
    name="A100 PCIe 40 GB", device_ids=(0x20B1, 0x20F1), pattern="A100[- ]PCIE[- ]40GB", memory_gb=40, tb_per_s=1.555,
    power_w=250,
)  # fmt: skip

H100_SXM5 = Product(
    name="H100 SXM5",
    target="sm_90",
    vendor_id=NVIDIA,
    device_ids=(0x2330,),
    names=(r"(NVIDIA )?H100 80GB HBM3", r"(NVIDIA )?H100[- ]SXM5?([- ]80GB)?"),
    compute_units=132,
    dies=1,
    boost_mhz=1980,
    matrix_mhz=1830,
    memory_bytes=80 * 10**9,
    memory_bytes_per_s=3.35 * 1e12,
    l2_bytes=50 * MIB,
    last_level_bytes=0,
    matrix_flops=_HOPPER_MATRIX,
    vector_flops=_HOPPER_VECTOR,
    power_w=700,
    sources=sourced(sheet=H100_SHEET, **_IDS, matrix_mhz=_matrix_clock(H100_PAPER, 1830)),
)

H100_PCIE = Product(
    name="H100 PCIe",
    target="sm_90",
    vendor_id=NVIDIA,
    device_ids=(0x2331,),
    names=(r"(NVIDIA )?H100[- ]PCIE([- ]80GB)?",),
    compute_units=114,
    dies=1,
    boost_mhz=1755,
    matrix_mhz=1620,
    memory_bytes=80 * 10**9,
    memory_bytes_per_s=2.039 * 1e12,
    l2_bytes=50 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(float64=51.2, tf32=378, float16=756, bfloat16=756, float8=1513, int8=1513),
    vector_flops=tera(float64=25.6, float32=51.2),
    power_w=350,
    sources=sourced(sheet=H100_PCIE_SHEET, **_IDS, matrix_mhz=_matrix_clock(H100_PAPER, 1620)),
)

H200 = Product(
    name="H200 SXM",
    target="sm_90",
    vendor_id=NVIDIA,
    device_ids=(0x2335,),
    names=(r"(NVIDIA )?H200( SXM)?( 141GB)?( HBM3e)?",),
    compute_units=132,
    dies=1,
    boost_mhz=1980,
    matrix_mhz=1830,
    memory_bytes=141 * 10**9,
    memory_bytes_per_s=4.8 * 1e12,
    l2_bytes=60 * MIB,
    last_level_bytes=0,
    matrix_flops=_HOPPER_MATRIX,
    vector_flops=_HOPPER_VECTOR,
    power_w=700,
    sources=sourced(
        sheet=H200_SHEET, **_IDS, matrix_mhz=_matrix_clock(H100_PAPER, 1830), l2_bytes=SIX_STACKS
    ),
)

H800 = Product(
    name="H800 SXM",
    target="sm_90",
    vendor_id=NVIDIA,
    device_ids=(0x2324,),
    names=(r"(NVIDIA )?H800( SXM5?)?( 80GB)?( HBM3)?",),
    compute_units=132,
    dies=1,
    boost_mhz=1980,
    matrix_mhz=1830,
    memory_bytes=80 * 10**9,
    memory_bytes_per_s=3.35 * 1e12,
    l2_bytes=50 * MIB,
    last_level_bytes=0,
    matrix_flops=_HOPPER_MATRIX | tera(float64=1.0),
    vector_flops=_HOPPER_VECTOR | tera(float64=1.0),
    power_w=700,
    sources=sourced(sheet=H800_LISTING, **_IDS, matrix_mhz=_matrix_clock(H100_PAPER, 1830)),
)

H20 = Product(
    name="H20",
    target="sm_90",
    vendor_id=NVIDIA,
    device_ids=(0x2329,),
    names=(r"(NVIDIA )?H20",),
    compute_units=78,
    dies=1,
    boost_mhz=1980,
    memory_bytes=96 * 10**9,
    memory_bytes_per_s=4.0 * 1e12,
    l2_bytes=60 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(float64=1.0, tf32=74, float16=148, bfloat16=148, float8=296, int8=296),
    vector_flops=tera(float64=1.0, float32=44),
    power_w=400,
    sources=sourced(sheet=H20_LISTING, **_IDS),
)

L20 = Product(
    name="L20",
    target="sm_89",
    vendor_id=NVIDIA,
    device_ids=(0x26BA, 0x26B7),
    names=(r"(NVIDIA )?L20",),
    compute_units=92,
    dies=1,
    boost_mhz=2520,
    memory_bytes=48 * 10**9,
    memory_bytes_per_s=0.864 * 1e12,
    l2_bytes=96 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(tf32=59.8, float16=119.5, bfloat16=119.5, float8=239, int8=239),
    vector_flops=tera(float32=59.8),
    power_w=275,
    sources=sourced(sheet=L20_LISTING, **_IDS),
)

L40S = Product(
    name="L40S",
    target="sm_89",
    vendor_id=NVIDIA,
    device_ids=(0x26B9,),
    names=(r"(NVIDIA )?L40S",),
    compute_units=142,
    dies=1,
    boost_mhz=2520,
    matrix_mhz=2490,
    memory_bytes=48 * 10**9,
    memory_bytes_per_s=0.864 * 1e12,
    l2_bytes=96 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(tf32=183, float16=362.05, bfloat16=362.05, float8=733, int8=733),
    vector_flops=tera(float32=91.6),
    power_w=350,
    sources=sourced(sheet=L40S_SHEET, **_IDS, matrix_mhz=_matrix_clock(L40S_SHEET, 2490)),
)

RTX_4090 = Product(
    name="RTX 4090",
    target="sm_89",
    vendor_id=NVIDIA,
    device_ids=(0x2684,),
    names=(r"(NVIDIA )?(GeForce )?RTX 4090",),
    compute_units=128,
    dies=1,
    boost_mhz=2520,
    max_mhz=3105,
    memory_bytes=24 * 10**9,
    memory_bytes_per_s=1.008 * 1e12,
    l2_bytes=72 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(tf32=82.6, float16=165.2, bfloat16=165.2, float8=330.3, int8=660.6),
    vector_flops=tera(float64=1.29, float32=82.6),
    half_accumulation=2.0,
    power_w=450,
    sources=sourced(sheet=ADA_PAPER, **_IDS, max_mhz=MAX_CLOCKS, half_accumulation=ADA_PAPER),
)

RTX_5090 = Product(
    name="RTX 5090",
    target="sm_120",
    vendor_id=NVIDIA,
    device_ids=(0x2B85,),
    names=(r"(NVIDIA )?(GeForce )?RTX 5090",),
    compute_units=170,
    dies=1,
    boost_mhz=2407,
    max_mhz=3090,
    memory_bytes=32 * 10**9,
    memory_bytes_per_s=1.792 * 1e12,
    l2_bytes=96 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(tf32=104.8, float16=209.5, bfloat16=209.5, float8=419, int8=838),
    vector_flops=tera(float64=1.64, float32=104.8),
    half_accumulation=2.0,
    power_w=575,
    sources=sourced(sheet=BLACKWELL_PAPER, **_IDS, max_mhz=MAX_CLOCKS, half_accumulation=BLACKWELL_PAPER),
)

B200 = Product(
    name="B200",
    target="sm_100",
    vendor_id=NVIDIA,
    device_ids=(0x2901,),
    names=(r"(NVIDIA )?B200",),
    compute_units=148,
    dies=1,
    boost_mhz=1965,
    memory_bytes=180 * 10**9,
    memory_bytes_per_s=8.0 * 1e12,
    l2_bytes=126 * MIB,
    last_level_bytes=0,
    matrix_flops=tera(float64=37, tf32=1125, float16=2250, bfloat16=2250, float8=4500, int8=4500),
    vector_flops=tera(float64=37, float32=75),
    power_w=1000,
    sources=sourced(sheet=B200_SHEET, **_IDS),
)

NVIDIA_PRODUCTS = (
    H100_SXM5, H100_PCIE, H200, H800, H20, A100_SXM_40, A100_SXM_80, A100_PCIE_40, A100_PCIE_80, L20, L40S, RTX_4090,
    RTX_5090, B200,
)  # fmt: skip
