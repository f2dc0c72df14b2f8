"""Cost model of `cross_entropy`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """Four operations per logit (compare, subtract, exponentiate, add); logits and labels read, one float32 per row written."""
    rows, classes = sizes["rows"], sizes["classes"]
    logit_bytes = rows * classes * item_bytes(dtype)
    row_bytes = rows * (item_bytes("int64") + item_bytes("float32"))
    return Cost(flops=4 * rows * classes, minimal_bytes=logit_bytes + row_bytes)
