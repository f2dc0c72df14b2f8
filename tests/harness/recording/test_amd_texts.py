"""Protects benchmarks for AMD's GPUs on CUDA: their launch options would be errors there."""

from __future__ import annotations

from harness.recording.amd_texts import for_cuda

CONFIG = (
    "configs = [triton.Config({'BLOCK': 16, 'waves_per_eu': 2, 'kpack': k}, num_warps=4) for k in (1, 2)]"
)


def test_launches_and_configs_lose_the_options_of_amd() -> None:
    text = for_cuda(
        f"{CONFIG}\nkernel[grid](x, BLOCK=16, matrix_instr_nonkdim=16)\nsettings = {{'kpack': 1}}\n"
    )
    assert text == (
        "configs = [triton.Config({'BLOCK': 16}, num_warps=4) for k in (1, 2)]\n"
        "kernel[grid](x, BLOCK=16)\nsettings = {'kpack': 1}"
    )


def test_a_parameter_with_the_name_of_an_option_stays() -> None:
    text = f"@triton.jit\ndef kernel(x, waves_per_eu: tl.constexpr):  # a comment\n    pass\n{CONFIG}\n"
    assert "'waves_per_eu': 2" in for_cuda(text)
    plain = "y = x.kpack  # a comment\n"
    assert for_cuda(plain) == plain
