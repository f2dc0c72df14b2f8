from suites import Cost, item_bytes


def cost(sizes, dtype):
    rows, columns, segments = sizes["rows"], sizes["columns"], sizes["segments"]
    read = rows * columns * item_bytes(dtype) + (segments + 1) * item_bytes("int64")
    return Cost(flops=rows * columns, minimal_bytes=read + segments * columns * item_bytes(dtype))
