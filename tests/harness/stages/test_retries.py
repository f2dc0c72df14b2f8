"""Protects the one table of retries: what `docs/trust.md` says is what the judge does."""

from __future__ import annotations

from pathlib import Path

from harness.stages.retries import RETRIES

PAGE = Path(__file__).parents[3] / "docs" / "trust.md"


def test_page_on_trust_shows_every_retry() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("### How often work is repeated")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    assert rows[2:] == [(retry.failure, retry.fault, retry.way, str(retry.times)) for retry in RETRIES]
