"""The table of targets: names, hints, and facts that bear on each other."""

from __future__ import annotations

import pytest

from harness.hardware.targets import DEFAULT_TARGET, Hardware, hardware, target, targets
from harness.wire.errors import UnknownTarget


def test_known_targets_are_found_by_name() -> None:
    assert [one.name for one in targets()][:3] == ["gfx942", "gfx90a", "gfx950"]
    assert all(target(one.name) == one for one in targets())
    assert target(DEFAULT_TARGET).wave_size == 64
    assert target("sm_90").backend == "cuda"


@pytest.mark.parametrize(("typed", "meant"), [("gfx924", "gfx942"), ("sm90", "sm_90"), ("gfx90", "gfx90a")])
def test_an_unknown_target_offers_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UnknownTarget, match=meant) as raised:
        target(typed)
    assert "\n" not in str(raised.value)


def test_every_number_has_a_source() -> None:
    for one in targets():
        facts = hardware(one)
        assert set(facts.sources) == set(Hardware.__struct_fields__) - {"name", "sources"}
        assert all(facts.sources.values())
