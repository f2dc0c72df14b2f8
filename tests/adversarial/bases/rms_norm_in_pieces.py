# Several programs a row: one launch adds squares up by atomics, the next one scales.
@triton.jit
def squares_kernel(x_ptr, residual_ptr, square_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + places, total.to(sum_ptr.dtype.element_ty), mask=mask)
    tl.atomic_add(square_ptr + row, tl.sum(total * total, axis=0))


@triton.jit
def scale_kernel(x_ptr, residual_ptr, square_ptr, weight_ptr, normed_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    total = x + tl.load(residual_ptr + places, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    normed = total / tl.sqrt(tl.load(square_ptr + row) / columns + eps) * weight
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=mask)


def rms_norm_residual(x, residual, weight, eps=1e-6):
    rows, columns = x.shape
    normed, total = torch.empty_like(x), torch.empty_like(x)
    square = torch.zeros(rows, dtype=torch.float32, device=x.device)
    grid = (rows, triton.cdiv(columns, 256))
    squares_kernel[grid](x, residual, square, total, columns, BLOCK=256)
    scale_kernel[grid](x, residual, square, weight, normed, columns, eps, BLOCK=256)
    return normed, total
