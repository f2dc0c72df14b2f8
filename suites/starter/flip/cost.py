"""Cost model of `flip`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """No arithmetic; the matrix read and written once."""
    return Cost(flops=0, minimal_bytes=2 * sizes["rows"] * sizes["columns"] * item_bytes(dtype))
