"""Commands under a warden: their status, and the end of what they leave behind; files of foreign code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from harness.linux import worker_start
from harness.linux.foreign_files import read_regular

LEAVES_ITS_GROUP = (
    "setsid sh -c 'echo $$ > left; exec sleep 60' & while ! [ -s left ]; do sleep 0.01; done; exit 3"
)


def test_process_that_left_its_group_ends_with_the_command(tmp_path: Path) -> None:
    command = ["harness.worker.server.warden", str(tmp_path), "sh", "-c", LEAVES_ITS_GROUP]
    ended = subprocess.run(worker_start.command(*command), cwd=tmp_path, timeout=60, check=False)
    assert ended.returncode == 3
    pid = (tmp_path / "left").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()


def test_file_of_foreign_code_is_read_only_if_it_is_a_small_regular_file(tmp_path: Path) -> None:
    for name, content in (("secret", b"key"), ("small", b"1"), ("large", b"12345")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")
    names = ("small", "large", "link", "pipe", "absent")
    assert [read_regular(tmp_path / name, 4) for name in names] == [b"1", None, None, None, None]
