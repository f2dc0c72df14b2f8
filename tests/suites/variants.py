"""Baselines with a hand-made mistake; each task must fail them. Correct variants are in `tests/adversarial/honest`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from tests.support.draws import drawn


@dataclass(frozen=True, slots=True)
class Variant:
    """Baseline with replaced text; each old text occurs exactly once."""

    task: str
    name: str
    edits: tuple[tuple[str, str], ...]

    @property
    def id(self) -> str:
        return f"{self.task}: {self.name}"

    def source(self, baseline: str) -> str:
        """Return the changed source; raises `AssertionError` if an old text does not occur exactly once."""
        for old, new in self.edits:
            assert baseline.count(old) == 1, f"{self.id}: {baseline.count(old)} times in the baseline: {old}"
            baseline = baseline.replace(old, new)
        return baseline


_NUMERATOR = "numerator = tl.exp(x - tl.max(x, axis=0))"
_DOT = "accumulator = tl.dot(a, b, accumulator)"
_ZEROS = "accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"
_BLOCKS = "block_m, block_n, block_k = tile_side(m), tile_side(n), 64"
_ROUND = "steps = tl.floor(x / divisor + 0.5)"

WRONG = (
    Variant("vector_add", "tail left out", (("triton.cdiv(n, block)", "max(1, n // block)"),)),
    Variant(
        "vector_add",
        "added in float16",
        (("out_ptr + offsets, x + y", "out_ptr + offsets, x.to(tl.float16) + y.to(tl.float16)"),),
    ),
    Variant("softmax", "no max-subtraction", ((_NUMERATOR, "numerator = tl.exp(x)"),)),
    Variant("softmax", "tail padded with 0", (('other=-float("inf")', "other=0.0"),)),
    Variant(
        "softmax",
        "float16 exponentials and sum",
        ((_NUMERATOR, "numerator = tl.exp(x - tl.max(x, axis=0)).to(tl.float16)"),),
    ),
    Variant(
        "softmax",
        "float16 sum",
        (("/ tl.sum(numerator, axis=0)", "/ tl.sum(numerator.to(tl.float16), axis=0).to(tl.float32)"),),
    ),
    Variant("softmax", "last row left out", (("[(rows,)]", "[(max(1, rows - 1),)]"),)),
    Variant("matmul", "float16 accumulator", ((_ZEROS, _ZEROS.replace("float32", "float16")), (_DOT, _DOT[:-1] + ", out_dtype=tl.float16)"))),
    Variant(
        "matmul",
        "float16 accumulator, tiles of 128",
        ((_ZEROS, _ZEROS.replace("float32", "float16")), (_DOT, _DOT[:-1] + ", out_dtype=tl.float16)"), (_BLOCKS, "block_m, block_n, block_k = 64, 64, 128")),
    ),
    Variant("matmul", "partial products rounded to float16", ((_DOT, "accumulator += tl.dot(a, b).to(tl.float16)"),)),
    Variant("matmul", "tail of k left out", (("range(0, k, BLOCK_K)", "range(0, k - BLOCK_K + 1, BLOCK_K)"),)),
    Variant("layer_norm", "no eps", (("tl.sqrt(variance + eps)", "tl.sqrt(variance)"),)),
    Variant("layer_norm", "eps outside the root", (("tl.sqrt(variance + eps)", "(tl.sqrt(variance) + eps)"),)),
    Variant(
        "layer_norm",
        "variance as mean of squares less squared mean",
        (("variance = tl.sum(deviation * deviation, axis=0) / columns", "variance = tl.sum(x * x, axis=0) / columns - mean * mean"),),
    ),
    Variant(
        "layer_norm",
        "variance over columns - 1",
        (("(deviation * deviation, axis=0) / columns", "(deviation * deviation, axis=0) / tl.maximum(columns - 1, 1)"),),
    ),
    Variant("layer_norm", "padding in the variance", (("tl.where(mask, x - mean, 0.0)", "x - mean"),)),
    Variant("layer_norm", "float16 mean", (("mean = tl.sum(x, axis=0)", "mean = tl.sum(x.to(tl.float16), axis=0).to(tl.float32)"),)),
    Variant("layer_norm", "no bias", (("* weight + bias", "* weight"),)),
    Variant("flip", "blocks reversed, not the row", (("(columns - 1 - offsets)", "tl.minimum(offsets // BLOCK * BLOCK + BLOCK - 1 - offsets % BLOCK, columns - 1)"),)),
    Variant("flip", "moved as float16", (("offsets, x, mask", "offsets, x.to(tl.float16), mask"),)),
    Variant("flip", "moved as float32", (("offsets, x, mask", "offsets, x.to(tl.float32).to(x.dtype), mask"),)),
    Variant("flip", "tail left out", (("triton.cdiv(columns, block)", "max(1, columns // block)"),)),
    Variant("rms_norm_residual", "no eps", (("tl.sqrt(mean_square + eps)", "tl.sqrt(mean_square)"),)),
    Variant("rms_norm_residual", "mean over the padded block", (("axis=0) / columns", "axis=0) / BLOCK"),)),
    Variant("rms_norm_residual", "sum rounded before it is normalized", (("total = x + residual", "total = (x + residual).to(sum_ptr.dtype.element_ty).to(tl.float32)"),)),
    Variant("rms_norm_residual", "float16 squares", (("tl.sum(total * total, axis=0)", "tl.sum((total * total).to(tl.float16), axis=0).to(tl.float32)"),)),
    Variant("rms_norm_residual", "no weight", (("* weight\n", "\n"),)),
    Variant("rms_norm_residual", "results swapped", (("return normed, total", "return total, normed"),)),
    Variant("rms_norm_residual", "residual not added to the sum", (("total.to(sum_ptr", "x.to(sum_ptr"),)),
    Variant(
        "cross_entropy",
        "no max-subtraction",
        (("new_maximum = tl.maximum(maximum, tl.max(logits, axis=0))", "new_maximum = 0.0"), ('maximum = -float("inf")', "maximum = 0.0")),
    ),
    Variant("cross_entropy", "tail padded with 0", (('classes, other=-float("inf")', "classes, other=0.0"),)),
    Variant("cross_entropy", "sum not rescaled", (("total = total * tl.exp(maximum - new_maximum) +", "total = total +"),)),
    Variant("cross_entropy", "logits rounded to float16", (("= tl.load(row_ptr + label).to(tl.float32)", "= tl.load(row_ptr + label).to(tl.float16).to(tl.float32)"),)),
    Variant("cross_entropy", "float16 sum", (("tl.sum(tl.exp(logits - new_maximum), axis=0)", "tl.sum(tl.exp(logits - new_maximum).to(tl.float16), axis=0).to(tl.float32)"),)),
    Variant("cross_entropy", "no label", (("(maximum - chosen)", "maximum"),)),
    Variant("matmul_w8a8", "truncated, not rounded", ((_ROUND, "steps = (x / divisor).to(tl.int32).to(tl.float32)"),)),
    Variant("matmul_w8a8", "rounded down", ((_ROUND, "steps = tl.floor(x / divisor)"),)),
    Variant("matmul_w8a8", "one scale for the tensor", (("    out = torch.empty((m, n)", "    scale.fill_(scale.max())\n    quantized.copy_((x.float() / scale[:, None]).round().to(torch.int8))\n    out = torch.empty((m, n)"),)),
    Variant("matmul_w8a8", "128 steps", (("scale = largest / 127.0", "scale = largest / 128.0"),)),
    Variant("matmul_w8a8", "no weight scale", (("* q_scale[:, None] * weight_scale[None, :]", "* q_scale[:, None]"),)),
    Variant("matmul_w8a8", "no activation scale", (("* q_scale[:, None] * weight_scale", "* weight_scale"),)),
    Variant("matmul_w8a8", "float16 accumulator", (("accumulator = tl.dot(q, weight, accumulator, out_dtype=tl.int32)", "accumulator = (accumulator + tl.dot(q, weight, out_dtype=tl.int32)).to(tl.float16)"), ("dtype=tl.int32)\n    for start", "dtype=tl.float16)\n    for start"))),
    Variant("matmul_w8a8", "tail of k left out", (("range(0, k, BLOCK_K)", "range(0, k - BLOCK_K + 1, BLOCK_K)"),)),
    Variant(
        "matmul_w8a8",
        "not quantized at all",
        (("    quantized = torch.empty((m, k), dtype=torch.int8, device=x.device)", "    return (x.double() @ (weight_int8.double() * weight_scale.double()[:, None]).T).to(x.dtype)\n    quantized = torch.empty((m, k), dtype=torch.int8, device=x.device)"),),
    ),
    Variant("wavedeck-bench/swiglu", "tail of the row left out", (("mask = offsets < columns", "mask = offsets < columns - 1"),)),
    Variant("wavedeck-bench/swiglu", "infinity by infinity", (("gate / (1.0 + tl.exp(-gate))", "gate * (tl.exp(gate) / (1.0 + tl.exp(gate)))"),)),
    Variant("wavedeck-bench/dequantize_rowwise", "128 steps", (("/ 127.0", "/ 128.0"),)),
    Variant("wavedeck-bench/dequantize_rowwise", "rows as long as a block", (("row * columns + offsets", "row * BLOCK + offsets"),)),
)  # fmt: skip

DRAWN = [
    variant
    for _, variants in groupby(WRONG, lambda variant: variant.task)
    for variant in drawn([*variants], 1)
]
"""One variant of each task; all of them in the soak."""
