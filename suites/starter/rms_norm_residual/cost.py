"""Cost model of `rms_norm_residual`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """Five operations per element; two matrices read, two written, the weight read once.

    Sum: an addition. Mean square: a multiply-add. Result: two multiplications.
    """
    rows, columns = sizes["rows"], sizes["columns"]
    return Cost(flops=5 * rows * columns, minimal_bytes=(4 * rows * columns + columns) * item_bytes(dtype))
