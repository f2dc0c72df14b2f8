from suites import Cost, item_bytes


def cost(sizes, dtype):
    rows, columns = sizes["rows"], sizes["columns"]
    written = rows * (item_bytes(dtype) + item_bytes("int64"))
    return Cost(flops=rows * columns, minimal_bytes=rows * columns * item_bytes(dtype) + written)
