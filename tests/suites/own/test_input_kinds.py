"""Inputs as a server has them: what `--shapes` says of them, and the values that are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from suites.errors import BadKernelFile
from suites.input_kinds import (
    BlockTable,
    CuSeqlens,
    Distinct,
    InputKind,
    Integers,
    Lengths,
    PowersOfTwo,
    Slots,
    Sorted,
    Starts,
    draw_inputs,
)
from suites.own.shapes import parse_shapes
from suites.own.sizes import design
from suites.own.texts import inputs_text

PAGED = (
    "cache=Nx16x64:fp16, lens=B:i32:1..16*W+1, table=BxW:i32:block_table(N,lens,16), cu=B+1:i32:cu_seqlens(T), "
    "q=Tx64:fp16, longest=max(cu), T=4096, B=8, N=2048, W=128"
)


def draw(seed: int, kind: InputKind, *shape: int) -> np.ndarray:
    values: np.ndarray = draw_inputs(torch.Generator().manual_seed(seed), {"x": (kind, shape)})["x"]
    return values


@given(st.integers(0, 1000), st.integers(3, 40), st.integers(1, 4000))
def test_offsets_have_empty_sequences_and_padding(seed: int, sequences: int, rows: int) -> None:
    lengths = np.diff(draw(seed, CuSeqlens(rows), sequences + 1))
    assert lengths.min() == lengths[-1] == 0
    assert 0 in lengths[:-1]
    assert lengths.sum() == rows
    assert np.diff(draw(seed, CuSeqlens(2 * sequences, 2), sequences + 1)).tolist() == [2] * sequences


def test_keys_are_no_fewer_than_queries_and_empty_where_they_are() -> None:
    kinds: dict[str, tuple[InputKind, tuple[int, ...]]] = {
        "k": (CuSeqlens(900, "q"), (9,)),
        "q": (CuSeqlens(100), (9,)),
    }
    drawn = draw_inputs(torch.Generator().manual_seed(3), kinds)
    queries, keys = np.diff(drawn["q"]), np.diff(drawn["k"])
    assert (keys >= queries).all()
    assert ((keys == 0) == (queries == 0)).all()
    assert keys.sum() == 900
    drawn = draw_inputs(
        torch.Generator(),
        {"starts": (Starts("lens"), (4,)), "lens": (Lengths(60, "q"), (4,)), "q": (Lengths(9), (4,))},
    )
    assert (drawn["lens"] >= drawn["q"]).all()
    assert drawn["starts"].tolist() == [0, *drawn["lens"].cumsum()[:-1]]


@given(st.integers(0, 1000))
def test_block_tables_share_prefixes_and_have_a_tail_that_misleads(seed: int) -> None:
    drawn = draw_inputs(
        torch.Generator().manual_seed(seed),
        {"table": (BlockTable(64, "lens", 16), (32, 8)), "lens": (Integers(0, 129), (32,))},
    )
    used = -(-drawn["lens"] // 16)
    firsts = [row[:count].tolist() for row, count in zip(drawn["table"], used, strict=True)]
    assert all(len(set(row)) == len(row) for row in firsts)
    shared = [row[0] == before[0] for row, before in zip(firsts[1:], firsts, strict=False) if row and before]
    assert any(shared)
    assert not all(shared)
    lasts = [row[-1] for row in firsts if row]
    assert all(sum(last in row for row in firsts) == 1 for last in lasts), "a server writes into it"
    tails = np.concatenate([row[count:] for row, count in zip(drawn["table"], used, strict=True)])
    assert tails.min() >= 0, "a kernel may load a block of the tail, if it does not use it"
    assert len(set(tails.tolist())) > 1


@given(st.integers(0, 1000))
def test_the_other_kinds_keep_what_they_promise(seed: int) -> None:
    slots = draw(seed, Slots(10, 16), 40).tolist()
    assert slots[-1] == -1
    taken = [slot for slot in slots if slot >= 0]
    assert len(set(taken)) == len(taken)
    assert max(taken) < 160
    assert sorted(draw(seed, Distinct(15), 15)) == list(range(15))
    assert all(len(set(row)) == 6 and max(row) < 8 for row in draw(seed, Distinct(8), 9, 6).tolist())
    ordered = draw(seed, Sorted(2, 9), 4, 30)
    assert (np.diff(ordered, axis=-1) >= 0).all()
    assert (ordered.min(), ordered.max()) >= (2, 2)
    assert all(math.log2(value) % 1 == 0 for value in draw(seed, PowersOfTwo(3, 65), 20).tolist())
    assert draw(seed, PowersOfTwo(3, 65), 99).max() == 64


def test_kinds_follow_the_sizes_of_a_case() -> None:
    names = ("cache", "lens", "table", "cu", "q", "longest")
    designed = design(parse_shapes([PAGED]), names)
    namespace: dict[str, object] = {}
    exec(inputs_text(designed, names), namespace)  # noqa: S102 -- our own text
    make = namespace["make_inputs"]
    assert callable(make)
    small = next(designed.small_sizes())[0]
    assert designed.elements(small) <= 1 << 16
    for sizes in (small, designed.sizes[0] | {"B": 5}):
        first = make(sizes, torch.float16, torch.Generator().manual_seed(7))
        again = make(sizes, torch.float16, torch.Generator().manual_seed(7))
        assert all(torch.equal(first[name], again[name]) for name in ("lens", "table", "cu"))
        assert first["table"].shape == (sizes["B"], sizes["W"])
        assert first["lens"].max() <= 16 * sizes["W"]
        assert first["cu"][-1] == sizes["T"]
        assert first["longest"] == first["cu"].diff().max()
        assert first["table"].max() < sizes["N"]


def test_numbers_for_sizes_stay_together_when_sizes_shrink() -> None:
    text = "cache=2048x16x64:fp16, lens=8:i32:1..2049, table=8x128:i32:block_table(2048,lens,16), cu=9:i32:cu_seqlens(8)"
    designed = design(parse_shapes([text]), ("cache", "lens", "table", "cu"))
    assert designed.tensors["cu"].shape == ("lens_0+1",)
    for small in designed.small_sizes():
        assert designed.can_be(small[0])


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (
            "t=8x8:i32:block_table(N), N=4",
            r"t: a block table of the shape \[8, 8\] needs 15 blocks, not 4",
        ),
        ("t=8x8:i32:block_table(N,l,16), l=8:i32:1..200, N=64", "l goes up to 199: make it 1..129"),
        ("t=8x8:i32:block_table(64,l,16), l=8:fp32", "t: it reads l, which must be integers; add l=8:i32"),
        ("s=8:i32:slots(4)", "s: 8 different slots need a pool of as many, not 4"),
        ("c=9:i32:cu_seqlens(7,1)", "c: 8 sequences need 8 rows, but there are 7"),
        ("d=8x9:i32:distinct(8)", "d: a row of 9 different values needs as many, not 8"),
    ],
)
def test_sizes_that_a_kind_cannot_have_are_one_line(shapes: str, words: str) -> None:
    cases = parse_shapes([shapes])
    names = tuple(cases[0].tensors)
    namespace: dict[str, object] = {}
    exec(inputs_text(designed := design(cases, names), names), namespace)  # noqa: S102 -- our own text
    make = namespace["make_inputs"]
    assert callable(make)
    with pytest.raises(ValueError, match=words) as raised:
        make(designed.sizes[0], torch.float32, torch.Generator())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (
            "t=8x8:i32:block_table(64,16)",
            r"t has 'block_table\(64,16\)'; write block_table\(N\), or block_tab",
        ),
        ("t=8x8:i32:block_table(64,l,16)", "the size l has no value"),
        ("c=9:i32:cu_seqlens", r"c has 'cu_seqlens'; write cu_seqlens\(T\)"),
        ("c=9:fp16:cu_seqlens(8)", "c is float16, but cu_seqlens means integers"),
        ("x=8:i32:permuted", "unknown part 'permuted'"),
        ("x=8:fp16, n=max(x)", "n reads x; add x=8:i32:1..1025"),
    ],
)
def test_wrong_kinds_are_one_line(shapes: str, words: str) -> None:
    with pytest.raises(BadKernelFile, match=words) as raised:
        parse_shapes([shapes])
    assert "\n" not in str(raised.value)
