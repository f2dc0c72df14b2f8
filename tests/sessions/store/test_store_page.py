"""Every command of docs/store.md works on a real store and prints a result."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from sessions import Home, record_at_rest
from sessions import events as ev
from tests.support.sessions.story import SESSION

PAGE = Path(__file__).parents[3] / "docs" / "store.md"


def test_commands_of_the_store_page_work(copied_home: Home) -> None:
    record_at_rest(
        copied_home, SESSION, ev.DecisionMade(attempt="softmax#2/3", accepted=True, why="fast", by="ada")
    )
    table = PAGE.read_text(encoding="utf-8").partition("## Commands")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    commands = [command for row in rows for command in re.findall(r"`([^`]+)`", row)]
    assert len(commands) > 10
    # Only failed attempts have a trace and a reflection, so these commands use the failed attempt two commits back.
    names = f"S={SESSION}; B=$S/starter/softmax/2"
    for command in commands:
        at = f"{names}~2; " if "trace.txt" in command or "reflection.md" in command else f"{names}; "
        done = subprocess.run(
            ["bash", "-euc", at + command],
            cwd=copied_home.store,
            # Bash warns about a locale that is not installed.
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.strip(), command
