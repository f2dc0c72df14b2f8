"""Sums that stand for outputs which stay on a device."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.worker.judge import digests
from harness.worker.judge.digests import digest

pytestmark = pytest.mark.judge


def memory(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@given(data=st.binary(min_size=1, max_size=100), other=st.binary(min_size=1, max_size=100))
def test_equal_bytes_alone_are_equal(data: bytes, other: bytes) -> None:
    assert digest(memory(data)) == digest(memory(bytes(data)))
    assert (digest(memory(data)) == digest(memory(other))) == (data == other)


@given(words=st.lists(st.binary(min_size=8, max_size=8), min_size=2, max_size=12), data=st.data())
def test_the_order_of_words_counts(words: list[bytes], data: st.DataObject) -> None:
    other = data.draw(st.permutations(words))
    assert (digest(memory(b"".join(words))) == digest(memory(b"".join(other)))) == (words == other)


def test_parts_of_large_memory_count_by_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = torch.randint(0, 256, (8 * 64 + 3,), dtype=torch.uint8)
    whole = digest(drawn)
    monkeypatch.setattr(digests, "_WORDS_AT_ONCE", 7)
    assert digest(drawn) == whole
