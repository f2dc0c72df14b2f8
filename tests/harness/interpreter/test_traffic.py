"""Protects counts, bounds checks and known bytes of memory, on addresses of real tensors without a kernel."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.worker.interpreter.known_memory import KnownMemory
from harness.worker.interpreter.traffic import Observation

pytestmark = pytest.mark.judge


def addresses(tensor: torch.Tensor, indices: list[int]) -> np.ndarray:
    places = np.array(indices, dtype=np.int64) * tensor.element_size() + tensor.data_ptr()
    return places.astype(np.uint64)


LANES = st.lists(st.tuples(st.integers(-20, 120), st.booleans()), min_size=1, max_size=64)
ACCESSES = st.lists(st.tuples(st.sampled_from(["load", "store", "atomic"]), LANES), min_size=1, max_size=5)


@given(ACCESSES, st.sampled_from([torch.float32, torch.float16, torch.float64]))
def test_only_lanes_inside_the_tensor_are_executed_and_counted(
    accesses: list[tuple[str, list[tuple[int, bool]]]], dtype: torch.dtype
) -> None:
    """Every unmasked lane is requested traffic; distinct elements inside the tensor are unique traffic."""
    x = torch.zeros(100, dtype=dtype)
    seen = Observation()
    seen.admit({"x": x})
    read, written, requested_reads, requested_writes = set[int](), set[int](), 0, 0
    for kind, lanes in accesses:
        indices, mask = [index for index, _ in lanes], np.array([wanted for _, wanted in lanes])
        kept = seen.touch(kind, addresses(x, indices), mask, x.element_size(), seen.origin(x, ("x_ptr",)))
        inside = [wanted and 0 <= index < 100 for index, wanted in lanes]
        assert (inside if kept is None else kept.tolist()) == inside
        assert (kept is None) == (sum(inside) == mask.sum())
        touched = {index for index, hit in zip(indices, inside, strict=True) if hit}
        if kind != "store":
            read |= touched
            requested_reads += int(mask.sum())
        if kind != "load":
            written |= touched
            requested_writes += int(mask.sum())
    counted = seen.traffic("case")
    assert counted.requested_read_bytes == x.element_size() * requested_reads
    assert counted.requested_write_bytes == x.element_size() * requested_writes
    assert counted.unique_read_bytes == x.element_size() * len(read) == seen.read_bytes(x)
    assert counted.unique_write_bytes == x.element_size() * len(written)
    assert seen.wrote(x) is bool(written)
    missing = {kind for kind, lanes in accesses for index, wanted in lanes if wanted and not 0 <= index < 100}
    assert (bool(seen.missed_loads), bool(seen.missed_stores)) == (
        "load" in missing,
        bool(missing - {"load"}),
    )


def test_pointer_must_stay_in_its_tensor() -> None:
    x, y = torch.zeros(8), torch.zeros(8)
    seen = Observation()
    seen.admit({"x": x, "y": y})
    kept = seen.touch("store", addresses(y, [0, 1]), None, 4, seen.origin(x, ("x_ptr",)))
    assert not kept.any()
    assert not seen.wrote(y)
    assert "`x_ptr`" in seen.missed_stores[0]


def test_views_may_access_their_whole_storage() -> None:
    whole = torch.zeros(10, 10)
    seen = Observation()
    seen.admit({"whole": whole})
    assert seen.touch("store", addresses(whole, [55]), None, 4, seen.origin(whole[2:, 3:])) is None
    assert seen.wrote(whole)
    assert seen.wrote(whole[5:, 5:])
    assert not seen.wrote(whole[:5])


def test_address_without_origin_is_checked_against_live_tensors() -> None:
    made = torch.zeros(16)
    seen = Observation()
    assert seen.touch("load", addresses(made, [0, 15]), None, 4, None) is None
    assert seen.touch("load", np.array([8], dtype=np.uint64), None, 4, None) is not None
    assert "outside every tensor" in seen.missed_loads[0]


def test_unique_bytes_count_freed_tensors_separately() -> None:
    seen = Observation()
    for _ in range(4):
        temporary = torch.zeros(1 << 16)
        seen.touch("store", addresses(temporary, [0]), None, 4, seen.origin(temporary))
        del temporary
    assert seen.unique_write_bytes == 16


def test_number_of_reports_is_limited() -> None:
    x = torch.zeros(8)
    seen = Observation()
    for name in range(50):
        seen.touch("load", addresses(x, [9]), None, 4, seen.origin(x, (f"p{name}",)))
    assert len(seen.missed_loads) == 8


def test_read_of_uninitialised_memory_names_tensor_and_index() -> None:
    made = torch.empty(16)
    seen = Observation()
    seen.fresh(made)
    origin = seen.origin(made, ("t_ptr",))
    seen.touch("store", addresses(made, [0, 1, 2, 3]), None, 4, origin)
    assert seen.touch("load", addresses(made, [0, 1, 2, 3]), None, 4, origin) is None
    assert seen.uninitialised == []
    masked = np.array([True, True, False])
    seen.touch("load", addresses(made, [2, 3, 9]), masked, 4, origin)
    assert seen.uninitialised == []
    seen.position = (5, 0, 0)
    assert seen.touch("atomic", addresses(made, [3, 7, 9]), None, 4, origin) is None
    (read,) = seen.uninitialised
    assert (
        "atomic of 2 elements of `t_ptr` that nothing had written (index 7 to 9) in program (5, 0, 0)" in read
    )


def test_memory_that_host_filled_is_initialised() -> None:
    made = torch.empty(4, 8)
    seen = Observation()
    seen.fresh(made)
    seen.filled(made[:2])
    origin = seen.origin(made, ("t_ptr",))
    seen.touch("load", addresses(made, list(range(16))), None, 4, origin)
    assert seen.uninitialised == []
    seen.touch("load", addresses(made, [16]), None, 4, origin)
    assert len(seen.uninitialised) == 1


def launched(*programs: list[tuple[str, int]]) -> Observation:
    """Run programs that each access elements of one tensor: pairs of a kind of access and an index."""
    out = torch.zeros(8)
    seen = Observation()
    origin = seen.origin(out, ("out",))
    with seen.following_stores():
        for number, accesses in enumerate(programs):
            seen.begin_program((number, 0, 0))
            for kind, index in accesses:
                seen.touch(kind, addresses(out, [index]), None, 4, origin)
    return seen


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        (
            [[("load", 0), ("store", 0)], [("load", 0), ("store", 0)]],
            "a load of `out` (index 0) reads what another program",
        ),
        ([[("store", 0)], [("load", 0)]], "a load of `out` (index 0) reads what another program"),
        ([[("load", 0), ("store", 0), ("load", 0)], [("load", 1), ("store", 1), ("load", 1)]], ""),
        ([[("store", 0)], [("store", 0), ("load", 0)]], ""),
        ([[("atomic", 0)], [("atomic", 0)]], ""),
        ([[("store", 0), ("atomic", 7)], [("atomic", 7), ("load", 0)]], ""),
    ],
    ids=["sum", "read", "own", "stored_again", "atomics", "counter"],
)
def test_load_of_what_another_program_stored_is_a_race_unless_the_program_may_have_waited(
    programs: list[list[tuple[str, int]]], message: str
) -> None:
    race = launched(*programs).race
    assert message in race if message else not race


def test_load_of_what_an_earlier_launch_stored_is_no_race() -> None:
    out = torch.zeros(8)
    seen = Observation()
    for kind in ("store", "load"):
        with seen.following_stores():
            seen.begin_program((0, 0, 0) if kind == "load" else (1, 0, 0))
            seen.touch(kind, addresses(out, [0]), None, 4, seen.origin(out))
    assert not seen.race


def test_bytes_that_nobody_watched_are_found_and_stores_make_them_known() -> None:
    known, tensor = KnownMemory(), torch.zeros(4)
    storage = tensor.untyped_storage()
    assert not known.watched(storage).any()
    known.remember(storage)
    assert known.watched(storage) is None
    tensor[1:3] = 1.0
    watched = known.watched(storage)
    assert watched is not None
    assert watched[:4].all()
    assert not watched[4:12].all()
    watched[4:8] = 1  # a kernel stored the second element
    known.remember_stores(storage, watched)
    watched = known.watched(storage)
    assert watched is not None
    assert watched[:8].all()
    assert not watched[8:12].all()


def test_a_resized_storage_keeps_what_is_known_of_it() -> None:
    known, tensor = KnownMemory(), torch.ones(2)
    known.remember(tensor.untyped_storage())
    tensor.resize_(1 << 16)
    tensor[2:] = 3.0
    watched = known.watched(tensor.untyped_storage())
    assert watched is not None
    assert watched[:8].all()
    assert not watched[8:12].all()
