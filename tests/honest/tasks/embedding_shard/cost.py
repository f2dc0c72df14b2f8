from suites import Cost, item_bytes


def cost(sizes, dtype):
    found = sizes["tokens"] // 2 * sizes["columns"]
    written = sizes["tokens"] * sizes["columns"]
    return Cost(
        flops=0, minimal_bytes=(found + written) * item_bytes(dtype) + sizes["tokens"] * item_bytes("int64")
    )
