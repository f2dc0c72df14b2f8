"""Engine process with a scripted judge: `python -m tests.support.engine.judgeless_engine LIVE_FOLDER`.

The model is the plan's. A candidate that subtracts is wrong, every other candidate is correct. Torch is not loaded, so an engine
starts in a second; the tests of `engine` and `harness` have the real judge.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from engine.process import process
from harness import Evaluation
from suites import Task

from .quick_engine import NoPool, QuickJudge


class SignJudge(QuickJudge):
    """Finds a kernel wrong if it subtracts."""

    async def evaluate(self, source: str, task: Task, **more: Any) -> Evaluation:
        """See `Judge`."""
        verdict = "wrong" if "x - y" in source else "correct"
        return await super().evaluate(f"# judge: {verdict}\n{source}", task, **more)


def main(folder: Path) -> int:
    """Run the engine of a live folder to its end."""
    process.DevicePool = NoPool  # type: ignore[assignment,misc]
    process.Judge = SignJudge  # type: ignore[assignment,misc]
    return process.main(folder)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
