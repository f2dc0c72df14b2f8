"""A roofline between two bounds, from counted traffic and a task's cost model: never a measurement."""

from __future__ import annotations

from harness.hardware.product import Product, matrix_peak, vector_peak
from harness.hardware.targets import hardware
from harness.wire.device import Target
from harness.wire.results.evaluation import Estimate, SampledTraffic, Traffic
from suites.task import Cost


def estimate(
    traffic: Traffic | SampledTraffic, cost: Cost, dtype: str, target: Target, product: Product | None = None
) -> Estimate | None:
    """
    Bounds on the time of one case in microseconds; `None` if the target has no peak for the dtype, or if the bytes that the
    case moves are not known.

    The bounds hold on `product` (the device at hand) if it is of this target, else on the target's reference device.
    `traffic` and `cost` must be at the same sizes; `dtype` is the case's. Launch overhead is in no bound.

    - Low: every FLOP runs at the dtype's fastest unit, so no solution of the task beats it from cold caches.
    - High: every requested byte comes from memory, and FLOPs outside `tl.dot` run at the vector peak. For sampled traffic the
      requested bytes are the sample's mean for all programs.
    - Between, for sampled traffic only: the distinct bytes of each die.
    """
    facts = hardware(target, product)
    vector = vector_peak(facts.vector_flops, dtype)
    matrix = matrix_peak(facts.matrix_flops, cost.dot_dtype) if cost.dot_dtype is not None else None
    fastest = max(
        (peak for peak in (matrix_peak(facts.matrix_flops, cost.dot_dtype or dtype), vector) if peak),
        default=None,
    )
    moved_bytes = cost.moved_bytes
    is_unknown = cost.estimated_bytes == 0 or (cost.dot_dtype is not None and matrix is None)
    if is_unknown or fastest is None or vector is None:
        return None
    low_memory = moved_bytes / facts.memory_bytes_per_s
    low_compute = cost.flops / fastest
    requested = max(traffic.requested_read_bytes + traffic.requested_write_bytes, moved_bytes)
    high_memory = requested / facts.memory_bytes_per_s
    other_flops = max(cost.flops - traffic.dot_flops, 0)
    high_compute = traffic.dot_flops / (matrix or vector) + other_flops / vector
    shared_us = None
    if isinstance(traffic, SampledTraffic) and traffic.dies == facts.dies:
        distinct = min(max(traffic.die_bytes, moved_bytes), requested)
        shared_us = max(distinct / facts.memory_bytes_per_s, low_compute) * 1e6
    of_device = product is not None and product.target == target.name
    name = facts.name if of_device else f"{facts.name} (reference for {target.name})"
    matrix_words = f"{matrix / 1e12:.4g} TFLOPS {cost.dot_dtype} matrix, " if matrix is not None else ""
    sizes = ", ".join(f"{axis}={size}" for axis, size in traffic.sizes.items())
    counted = "cpu sizes, every program counted"
    if isinstance(traffic, SampledTraffic):
        counted = f"{traffic.sampled} of {traffic.programs} programs sampled as on {traffic.target}"
    return Estimate(
        target=target.name,
        case=traffic.case,
        sizes=traffic.sizes,
        low_us=max(low_memory, low_compute) * 1e6,
        high_us=max(high_memory, high_compute) * 1e6,
        bound_low="memory" if low_memory >= low_compute else "compute",
        bound_high="memory" if high_memory >= high_compute else "compute",
        basis=f"{name} vendor peaks: {facts.memory_bytes_per_s / 1e12:.4g} TB/s, {matrix_words}{vector / 1e12:.4g} TFLOPS vector; "
        f"cold caches, no launch overhead; at {sizes}; {counted}",
        shared_us=shared_us,
        product=facts.name,
        of_device=of_device,
    )
