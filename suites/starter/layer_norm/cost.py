"""Cost model of `layer_norm`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """Seven operations per element; the matrix read and written once, weight and bias read once.

    Mean: an addition. Variance: a subtraction and a multiply-add. Result: two multiplications and an addition.
    """
    rows, columns = sizes["rows"], sizes["columns"]
    return Cost(
        flops=7 * rows * columns, minimal_bytes=(2 * rows * columns + 2 * columns) * item_bytes(dtype)
    )
