from suites import Cost, item_bytes


def cost(sizes, dtype):
    elements = sizes["batch"] * sizes["heads"] * sizes["tokens"] * sizes["dim"]
    tables = sizes["tokens"] * sizes["dim"] * item_bytes("float32")
    return Cost(flops=3 * elements, minimal_bytes=2 * elements * item_bytes(dtype) + tables)
