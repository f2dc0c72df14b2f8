"""A keyed digest of device memory, computed on the device: equal bytes give equal digests, others only by chance."""

from __future__ import annotations

import secrets

import torch

_SECRET = secrets.randbits(62)
_WORDS_AT_ONCE = 1 << 24
# Constants of SplitMix64 by Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014), as signed
# 64-bit numbers.
_GOLDEN, _MIX_1, _MIX_2 = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15


def digest(memory: torch.Tensor) -> bytes:
    """Return the digest of a flat tensor of bytes: the sum mod 2**64 of its 8-byte words, each times a secret weight."""
    words = memory.numel() // 8
    whole = memory[: 8 * words].view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=memory.device)
    for start in range(0, words, _WORDS_AT_ONCE):
        part = whole[start : start + _WORDS_AT_ONCE]
        total += (part * _weights(start, part.numel(), memory.device)).sum()
    rest = bytes(memory[8 * words :].cpu().numpy().tobytes())
    return int(total).to_bytes(8, "little", signed=True) + rest + memory.numel().to_bytes(8, "little")


def _weights(start: int, count: int, device: torch.device) -> torch.Tensor:
    """Return the weights of words from `start` on; all odd, so that every word counts."""
    mixed = (torch.arange(start, start + count, dtype=torch.int64, device=device) + _SECRET) * _GOLDEN
    mixed = (mixed ^ (mixed >> 30)) * _MIX_1
    mixed = (mixed ^ (mixed >> 27)) * _MIX_2
    return mixed | 1
