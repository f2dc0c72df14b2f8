"""Cost model of `swiglu`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """Five operations per element (exponential, addition, division, two products); two matrices read, one written."""
    elements = sizes["rows"] * sizes["columns"]
    return Cost(flops=5 * elements, minimal_bytes=3 * elements * item_bytes(dtype))
