"""Share of a product's peaks that a measured time reaches, and when a time is too good to be true.

Bytes and FLOPs are the cost model's.
"""

from __future__ import annotations

import msgspec

from harness.hardware.product import FLOAT8, Product
from harness.hardware.product_tables import PRODUCTS
from harness.wire.limits import memory_words
from harness.wire.messages.clock import Floor
from harness.wire.results.latency import Efficiency
from suites.costs import task_cost
from suites.dtypes import on_target
from suites.task import Case, Task

ROUNDING = 1.03
"""Sheets round: the memory clock and bus of an H200 give 4.92 TB/s, its sheet says 4.8."""


def efficiency(
    product: Product,
    dtype: str,
    bytes_minimal: int,
    flops: int,
    milliseconds: float,
    *,
    matrix: bool,
    bytes_moved: int | None = None,
    written: int | None = None,
) -> Efficiency:
    """IOU (of peak bandwidth), MFU (of peak FLOP/s) and `suspect` of one case that took `milliseconds`.

    `bytes_minimal` and `flops` are the task's minimum on any device (`suites.Cost`); `dtype` is the torch name of the dtype of
    the FLOPs. `bytes_moved` is an estimate, where the minimum is only a part; 0 if it is not known. Utilisation counts the
    estimate, suspicion only the minimum. `written`: bytes of the outputs, if the caches were cold. With `matrix`, FLOPs are
    compared with the peak of the matrix units, else of the vector units. A utilisation is `None` for zero work and for an
    unknown peak. The share of the vendor's achievable figure may pass 1. Source of the names, and of max(IOU, MFU):
    KernelBench-X.
    """
    if milliseconds <= 0:
        raise ValueError(f"a time of {milliseconds} ms is no measurement")
    seconds = milliseconds / 1e3
    if bytes_moved is None:
        bytes_moved = bytes_minimal
    elif seconds < least_seconds(product, bytes_moved):
        bytes_moved = 0  # the time refutes the estimate
    bytes_per_s, flops_per_s = bytes_moved / seconds, flops / seconds
    peak = product.peak(dtype, matrix=matrix)
    achievable = product.achievable_flops.get("float8" if dtype in FLOAT8 else dtype) if matrix else None
    return Efficiency(
        product=product.name,
        bytes=bytes_moved,
        flops=flops,
        dtype=dtype,
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        io_utilisation=_share(bytes_per_s, product.memory_bytes_per_s),
        mfu=_share(flops_per_s, peak),
        io_achievable=_share(bytes_per_s, product.achievable_bytes_per_s),
        mfu_achievable=_share(flops_per_s, achievable),
        suspect="; ".join(_suspicions(product, dtype, bytes_minimal, flops, seconds, written)),
    )


def case_efficiency(
    task: Task,
    case: Case,
    product: Product,
    milliseconds: float,
    floor: Floor | None = None,
    written: int | None = None,
) -> Efficiency:
    """Efficiency of a case timed at its `gpu` sizes, by the task's `cost.py`; `BadTask` if the cost model fails.

    The dtype is the matrix products' dtype if the model has matrix products, else the case's, as the product's architecture
    has it. `floor` has the copies that were measured on the device, for the share of the practical roof. `written`: bytes of
    the outputs, if the caches were cold.
    """
    cost = task_cost(task, case.gpu, case.dtype)
    dtype = on_target(cost.dot_dtype or case.dtype, product.target)
    shares = efficiency(
        product,
        dtype,
        cost.minimal_bytes,
        cost.flops,
        milliseconds,
        matrix=cost.dot_dtype is not None,
        bytes_moved=cost.estimated_bytes,
        written=written,
    )
    if cost.uncounted_products:
        return msgspec.structs.replace(shares, io_utilisation=None, io_achievable=None)
    fastest = max((cold for _, cold, _ in floor.copies), default=None) if floor is not None else None
    product_rate = floor.matmul_flops_per_s if floor is not None and cost.dot_dtype is not None else None
    return msgspec.structs.replace(
        shares,
        io_measured=_share(shares.bytes_per_s, fastest),
        mfu_measured=_share(shares.flops_per_s, product_rate),
    )


def matmul_dtype(task: Task, product: Product | None) -> str:
    """The dtype of the matrix product to measure the device with; empty if no case has matrix products."""
    if product is None:
        return ""
    dtypes = {task_cost(task, case.gpu, case.dtype).dot_dtype for case in task.open_cases} - {None}
    return min((on_target(dtype, product.target) for dtype in dtypes if dtype), default="")


def flush_bytes(product: Product | None) -> int:
    """Bytes to read to empty all caches: twice their size. Unknown products (`None`) count as the one with the largest."""
    products = PRODUCTS if product is None else (product,)
    return 2 * max(product.l2_bytes + product.last_level_bytes for product in products)


def least_seconds(product: Product, bytes_minimal: int, written: int | None = None) -> float:
    """The least time in which a kernel can touch so many bytes, each once; 0 if the caches may hold all of them.

    Bytes in caches may have been there before, or may be writes that have not left the caches, so only the rest counts
    against memory. With cold caches only the `written` bytes can be there; `None` for hot caches. A last-level cache may keep
    half of the inputs through the flush, which was not measured. Bytes beyond L2 pass the last-level cache and count against
    its speed, where that is published. Most products publish no L2 speed, so bytes in L2 have no limit here.
    """
    cached = bytes_minimal if written is None else written
    if product.last_level_bytes:
        cached = max(cached, bytes_minimal // 2)
    beyond_caches = bytes_minimal - min(cached, product.l2_bytes + product.last_level_bytes)
    least = beyond_caches / product.memory_bytes_per_s
    if product.last_level_bytes and product.last_level_bytes_per_s:
        beyond_l2 = bytes_minimal - min(cached, product.l2_bytes)
        least = max(least, beyond_l2 / product.last_level_bytes_per_s)
    return least / ROUNDING


def most_flops(product: Product, dtype: str) -> float | None:
    """FLOP/s that no kernel of this dtype can pass, whichever units it uses; `None` if no peak is known.

    Taken at the boost clock, even if the sheet gives the peak of the matrix units at a lower clock. It is a limit for
    suspicion, not a peak for comparisons.
    """
    matrix, vector = product.peak(dtype, matrix=True), product.peak(dtype, matrix=False)
    limits = []
    if matrix is not None:
        limits.append(matrix * product.boost_mhz / (product.matrix_mhz or product.boost_mhz))
    if vector is not None:
        limits.append(vector)
    return max(limits) * ROUNDING if limits else None


def _suspicions(
    product: Product, dtype: str, bytes_minimal: int, flops: int, seconds: float, written: int | None
) -> list[str]:
    suspicions = []
    if seconds < (least := least_seconds(product, bytes_minimal, written)):
        caches = product.l2_bytes + product.last_level_bytes
        suspicions.append(
            f"{bytes_minimal / 1e6:.4g} MB in {seconds * 1e6:.4g} us: {product.name} needs at least {least * 1e6:.4g} us, "
            f"with {product.memory_bytes_per_s / 1e12:.4g} TB/s of memory and {memory_words(caches)} of "
            f"{'caches' if written is None else 'cold caches'}"
        )
    limit = most_flops(product, dtype)
    if limit is not None and flops / seconds > limit:
        suspicions.append(
            f"{flops / seconds / 1e12:.4g} TFLOP/s of {dtype}: {product.name} does at most {limit / 1e12:.4g}"
        )
    return suspicions


def _share(rate: float, peak: float | None) -> float | None:
    return rate / peak if rate and peak else None
