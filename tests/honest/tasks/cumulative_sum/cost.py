from suites import Cost, item_bytes


def cost(sizes, dtype):
    elements = sizes["rows"] * sizes["columns"]
    return Cost(flops=elements, minimal_bytes=2 * elements * item_bytes(dtype))
