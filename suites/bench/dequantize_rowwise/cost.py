"""Cost model of `dequantize_rowwise`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """One product per element and one division per row; 8-bit values and scales read, floats written."""
    rows, columns = sizes["rows"], sizes["columns"]
    elements, item = rows * columns, item_bytes(dtype)
    return Cost(flops=elements + rows, minimal_bytes=elements * (1 + item) + rows * item)
