"""Protects the table of targets: names, hints for misspelled names, and sources of figures."""

from __future__ import annotations

import pytest

from harness.hardware.targets import DEFAULT_TARGET, Hardware, hardware, target, targets
from harness.wire.errors import UnknownTarget


def test_known_target_is_found_by_name() -> None:
    assert [entry.name for entry in targets()][:3] == ["gfx942", "gfx90a", "gfx950"]
    assert all(target(entry.name) == entry for entry in targets())
    assert target(DEFAULT_TARGET).wave_size == 64
    assert target("sm_90").backend == "cuda"


@pytest.mark.parametrize(("typed", "nearest"), [("gfx924", "gfx942"), ("sm90", "sm_90"), ("gfx90", "gfx90a")])
def test_unknown_target_error_names_the_nearest(typed: str, nearest: str) -> None:
    with pytest.raises(UnknownTarget, match=nearest) as raised:
        target(typed)
    assert "\n" not in str(raised.value)


def test_every_figure_has_a_source() -> None:
    for entry in targets():
        facts = hardware(entry)
        assert set(facts.sources) == set(Hardware.__struct_fields__) - {"name", "sources"}
        assert all(facts.sources.values())
