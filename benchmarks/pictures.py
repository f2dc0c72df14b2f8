"""Draws the pictures of the README from the session of an H200 that comes with Wavedeck.

    python -m benchmarks.pictures docs/pictures

How the session was made: docs/measurements.md, "The example".
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from sessions.home import Home
from sessions.recorded_example import NAME
from tui.cockpit.app import Cockpit
from tui.cockpit.terminal.themes import DARK

SIZE = (120, 40)
PICTURES = {
    "fleet": ("number_sign", *"layer_norm", "number_sign", *"1/3", "enter", "F"),
    "agent": ("dollar_sign", "j", "j", "enter", "left_square_bracket", "left_square_bracket", "d"),
    "latency": ("L",),
    "review": ("V",),
}
"""Keys that lead from one picture to the next, after the replay has begun."""


async def draw(folder: Path) -> None:
    """Write one SVG file for each picture."""
    with tempfile.TemporaryDirectory() as home:
        app = Cockpit(Home(Path(home)), session=NAME, mode="replay", readonly=True)
        app.theme = DARK.name
        async with app.run_test(size=SIZE) as pilot:
            while app.feed is None or app.feed.replay is None or not app.feed.replay.story.is_whole:
                await pilot.pause(0.1)
            for name, keys in PICTURES.items():
                await pilot.press(*keys)
                await pilot.pause(1.0)
                app.clear_notifications()
                await pilot.pause(0.1)
                (folder / f"{name}.svg").write_text(app.export_screenshot(title="wavedeck"), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/pictures"))
    target = parser.parse_args().folder
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(draw(target))
