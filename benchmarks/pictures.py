"""Draws the pictures of the README and of docs/cockpit.md from the generated session of `eighty_instances`.

    python -m benchmarks.pictures docs/pictures

No figure on the pictures was measured.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
from pathlib import Path

from benchmarks.generated_session.eighty_instances import session
from tests.support.cockpit.cockpits import live

SIZE = (120, 40)
PICTURES = {
    "fleet": (),
    "agent": ("j", "j", "l", "l", "enter", "d", "d"),
    "latency": ("F", "L"),
    "review": ("F", "V"),
}
"""Keys that lead from one picture to the next."""


async def draw(folder: Path) -> None:
    """Write one SVG file for each picture."""
    events = session()
    app, _ = live(events)
    now = events[-1].wall + 12.0
    app._doors = dataclasses.replace(app._doors, wall=lambda: now)
    async with app.run_test(size=SIZE) as pilot:
        for name, keys in PICTURES.items():
            await pilot.press(*keys)
            await pilot.pause(0.5)
            app.clear_notifications()
            await pilot.pause(0.1)
            (folder / f"{name}.svg").write_text(app.export_screenshot(title="wavedeck"), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/pictures"))
    target = parser.parse_args().folder
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(draw(target))
