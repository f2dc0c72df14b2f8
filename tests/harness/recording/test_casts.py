"""Protects the noise of references: casts that happen count, words in a text do not."""

from __future__ import annotations

import torch

from harness.worker.recording.one_call.host_operators import CastWatch


def test_only_casts_from_wider_floats_are_noted() -> None:
    x = torch.ones(4)
    quiet = CastWatch(on_gpu=False)
    with quiet:
        # bfloat16 and half are words here
        x.double().float().relu().to(torch.int8)
        torch.ones(4, dtype=torch.float16).float()
    assert "bfloat16" not in quiet.seen
    noting = CastWatch(on_gpu=False)
    with noting:
        x.bfloat16()
    assert "bfloat16" in noting.seen


def test_a_compiled_kernel_tells_its_casts() -> None:
    watch = CastWatch(on_gpu=False)
    watch._read("%3 = arith.extf %2 : tensor<16xf16> to tensor<16xf32>")
    assert "float16" not in watch._seen
    watch._read("%3 = arith.truncf %2 : tensor<16xf32> to tensor<16xf16> loc(#loc)")
    assert watch._seen == {"float16"}
