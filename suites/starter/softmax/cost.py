"""Cost model of `softmax`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """Five operations per element (compare, subtract, exponentiate, add, divide); the matrix read and written once."""
    elements = sizes["rows"] * sizes["columns"]
    return Cost(flops=5 * elements, minimal_bytes=2 * elements * item_bytes(dtype))
