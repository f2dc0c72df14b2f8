"""What `vector_add` asks of any device."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """One addition an element; two vectors read, one written."""
    n = sizes["n"]
    return Cost(flops=n, minimal_bytes=3 * n * item_bytes(dtype))
