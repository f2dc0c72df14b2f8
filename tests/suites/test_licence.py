"""Licences of suites, from their licence files."""

from __future__ import annotations

from pathlib import Path

from suites import add_suite
from suites.licence import suite_licences

MIT = (
    "Permission is hereby granted, free of charge, to any person\nto deal in the Software without restriction"
)


def test_licence_is_read_from_the_folder_or_the_root_of_its_repository(tmp_path: Path) -> None:
    registry = tmp_path / "home" / "suites.toml"
    for name in ("mine", "theirs", "silent"):
        task = tmp_path / name / "tasks" / "softmax"
        task.mkdir(parents=True)
        (task / "task.toml").touch()
        add_suite(name, task.parent, registry)
    (tmp_path / "mine" / "tasks" / "LICENSE.txt").write_text(MIT)
    (tmp_path / "theirs" / ".git").mkdir()
    (tmp_path / "theirs" / "COPYING").write_text("Apache License\n  Version 2.0, January 2004")
    (tmp_path / "silent" / "LICENSE").write_text(MIT)
    licences = suite_licences(registry)
    assert licences == {
        "starter": "Apache-2.0",
        "wavedeck-bench": "Apache-2.0",
        "mine": "MIT",
        "theirs": "Apache-2.0",
    }
