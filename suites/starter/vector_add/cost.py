"""Cost model of `vector_add`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """One addition per element; two vectors read, one written."""
    n = sizes["n"]
    return Cost(flops=n, minimal_bytes=3 * n * item_bytes(dtype))
