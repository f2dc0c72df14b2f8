"""Protects recorded folders: two processes may record one task at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.recording.recorded_task import _exchange


def test_folders_that_replace_each_other_at_the_same_time_stay_whole(tmp_path: Path) -> None:
    folder = tmp_path / "task"

    def record(number: int) -> None:
        scratch = tmp_path / str(number)
        (scratch / "new").mkdir(parents=True)
        for name in ("task.toml", "script.json"):
            (scratch / "new" / name).write_text(str(number))
        _exchange(folder, scratch / "new", scratch / "before")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(record, range(200)))
    assert (folder / "task.toml").read_text() == (folder / "script.json").read_text()
