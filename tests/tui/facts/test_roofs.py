"""Shares of the roof: which roof limits a case, and what every surface says where no matrix product was measured."""

from __future__ import annotations

import msgspec
import pytest

from harness import Latency
from harness.wire.results.roofs import roof_share
from sessions.state.cases import case_rows
from tests.support.sessions.measured_sessions import latency, timed
from tui.cockpit.screens.latency.captions import roof_words
from tui.facts.evaluation.roofs import NO_PRODUCT
from tui.facts.evaluation.times import times_tables
from tui.print.plain import tables_text


def shares(*, memory: float, compute: float, product: float | None = None) -> Latency:
    """Return a case at these shares: of a copy, of the vendor's peak of compute, of a measured matrix product."""
    case = latency("square", 262.0, 129.0, roof=memory)
    assert case.efficiency is not None
    used = msgspec.structs.replace(case.efficiency, mfu=compute, mfu_measured=product)
    return msgspec.structs.replace(case, efficiency=used)


def test_compute_limits_a_case_without_a_measured_product_if_its_share_of_the_peak_is_larger() -> None:
    square = shares(memory=0.21, compute=0.54)
    assert roof_share(square) == (0.54, "compute", True)
    evaluation = timed((square,))
    assert case_rows(evaluation)[0].limit == "compute peak"
    text = tables_text(times_tables(evaluation))
    assert "54 % compute peak" in text
    assert NO_PRODUCT in text
    assert "compute peak: the vendor's, no product measured" in roof_words(evaluation)


@pytest.mark.parametrize(
    ("case", "share", "limit"),
    [
        (shares(memory=0.83, compute=0.01), 0.83, "memory"),
        (shares(memory=0.18, compute=0.75, product=0.97), 0.97, "compute"),
    ],
)
def test_measured_roofs_are_named_without_the_vendors_peak(case: Latency, share: float, limit: str) -> None:
    assert roof_share(case) == (share, limit, False)
    text = tables_text(times_tables(timed((case,))))
    assert "compute peak" not in text.lower()
