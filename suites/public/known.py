"""Facts about the public benchmarks that their files do not say: known issues, tolerances, numbers of tasks."""

from __future__ import annotations

import re

from suites.public.task import Issue, PublicTask, SuiteKind
from suites.task import Tolerance

COUNTS = {
    SuiteKind.TRITONBENCH_REVISED: 184,
    SuiteKind.ROCM: 31,
    SuiteKind.TRITONBENCH_G: 184,
    SuiteKind.TRITONBENCH_T: 166,
    SuiteKind.KERNELBENCH_X: 176,
    SuiteKind.KERNELBENCH: 270,
    SuiteKind.ROBUST_KBENCH: 219,
    SuiteKind.AGENTKERNELARENA: 426,
    SuiteKind.GPU_MODE: 42,
    SuiteKind.ATREX_BENCH: 30,
}
"""Tasks of a whole clone at the commit that the loader was written for; a person's own folder has any number."""


def _tolerances(float32: float, float16: float, bfloat16: float) -> dict[str, Tolerance]:
    """Equal relative and absolute tolerances by dtype; float64 has that of float32."""
    values = {"float64": float32, "float32": float32, "float16": float16, "bfloat16": bfloat16}
    return {dtype: Tolerance(rtol=value, atol=value) for dtype, value in values.items()}


LOOSE = _tolerances(1e-3, 5e-3, 1e-2)
"""TritonBench and its revision. GEAK allows 1e-3 for all dtypes; float16 and bfloat16 need room for their own rounding."""

HUNDREDTH = _tolerances(1e-2, 1e-2, 1e-2)
"""ROCm Triton Benchmark: its comparison of saved results."""

KERNELBENCH_X = _tolerances(1e-5, 5e-3, 5e-3)

KERNELBENCH = _tolerances(1e-4, 1e-2, 1e-2)

ROBUST_KBENCH = _tolerances(1e-5, 1e-5, 1e-5)

ARENA = _tolerances(1e-3, 1e-2, 1e-2)
"""AgentKernelArena: each script has its own limits; these are the usual ones."""

ATREX = {dtype: {"float32": Tolerance(rtol=1e-2, scale=1e-2)} for dtype in ("bf16", "fp16", "fp8_e4m3")}
"""Atrex-bench, by an operator's dtype: production kernels round what leads to a float32 output to this dtype. Its own limits,
1e-2 and 5 %, accept zeros for many outputs."""

ROUNDED_ONCE = 1.01
"""Units in the last place for outputs of 16 bits of GPU MODE, because its usual 1e-5 is less than one rounding."""

_TRITONBENCH = {
    Issue.WEAK_ORACLE: """bmm_chunk_bwd bmm_chunk_fwd cache_transform_triton chunk_delta_fwd chunk_gla_fwd
        chunk_gate_recurrence fused_rwkv6_kernel layer_norm_liger matrix_reduction rms_matmul_rbe rotary_transform
        var_len_copy""",
    Issue.SCALAR_ORACLE: """chunk_linear_attn chunk_retention_ops fused_recurrent_delta fused_recurrent_retention
        parallel_attention parallel_retention_attention""",
    Issue.NAN_REFERENCE: """attention_llama attn_fwd_triton block_sparse_attn chunk_bwd_dqkg chunk_gated_attention
        flash_decode2_llama mixed_sparse_attention softmax_flaggems""",
}
"""Tasks by issue, found by running the references of the revised suite; TritonBench-G has the same tests but for 13 files."""

_BY_NAME: dict[SuiteKind, dict[Issue, str]] = {
    SuiteKind.TRITONBENCH_REVISED: _TRITONBENCH,
    SuiteKind.TRITONBENCH_G: _TRITONBENCH,
    SuiteKind.TRITONBENCH_T: {Issue.NO_TENSORS: "adam"},
    SuiteKind.KERNELBENCH_X: {Issue.NO_TENSORS: "adam"},
}
_HIP = re.compile(r"\bextra\.hip\b|\bhip\.libdevice\b")
_RANDOM_WORDS = (
    "rand",
    "ropout",
    "normal",
    "uniform_",
    "bernoulli",
    "exponential_",
    "multinomial",
    "gumbel",
    "rrelu",
)
"""A text without these words needs no search."""
_RANDOM = re.compile(
    r"\btorch\.(?:rand\w*|bernoulli|multinomial|normal)\b|"
    r"\b(?:F|functional)\.(?:\w*dropout\w*|rrelu|gumbel_softmax)\b|\bnn\.\w*Dropout\w*|"
    r"\.(?:normal|uniform|bernoulli|exponential|random)_\("
)
_ONLY_AMD = re.compile(r"^(?:from|import)[ ].*\bextra\.hip\b|^[^#\n]*\btl\.extra\.hip\b", re.MULTILINE)
"""An import below `try` has an alternative for other vendors."""


def issues_of(task: PublicTask, reference: str, code: str, *, has_copies: bool = False) -> tuple[Issue, ...]:
    """Return the known issues of a task.

    `reference` is the text of the whole reference, `code` the text that its entry points use: random numbers elsewhere in the
    file do no harm.
    """
    issues = [issue for issue, names in _BY_NAME.get(task.kind, {}).items() if task.name in names.split()]
    if "hip" in reference and _HIP.search(reference):
        issues.append(Issue.HIP_LIBDEVICE)
    if "make_block_ptr" in reference:
        issues.append(Issue.BLOCK_POINTERS)
    if "from_pretrained" in reference:
        issues.append(Issue.NETWORK)
    if any(word in code for word in _RANDOM_WORDS) and _RANDOM.search(code):
        issues.append(Issue.RANDOM)
    if has_copies:
        issues.append(Issue.OWN_COPY)
    return tuple(issues)


def vendor_of(reference: str) -> str:
    """Return `amd` if a reference runs on AMD's GPUs only, else an empty text."""
    return "amd" if "extra.hip" in reference and _ONLY_AMD.search(reference) else ""
