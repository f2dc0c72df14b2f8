"""The last line of a call that ran out of time, from a file that the candidate can write to."""

from __future__ import annotations

from inspect import currentframe
from pathlib import Path
from types import FrameType

from harness.wire.channels.stack_samples import NAME, last_line, sample_of

STACK = 'Stack (most recent call first):\n  File "/usr/lib/python3/ast.py", line 9 in walk\n'


def test_line_is_the_candidates_innermost_in_the_last_sample(tmp_path: Path) -> None:
    frames = '  File "/tmp/a/kernel.py", line {} in body\n  File "/tmp/a/kernel.py", line 30 in softmax\n'
    (tmp_path / NAME).write_text(STACK + frames.format(11) + STACK + frames.format(12))
    assert last_line(tmp_path) == 12


def test_sample_of_a_frame_names_its_line(tmp_path: Path) -> None:
    frames: list[FrameType | None] = []
    exec(  # noqa: S102
        compile("def body():\n    note()\n\nbody()", "/tmp/a/kernel.py", "exec"),
        {"note": lambda: frames.append(currentframe())},
    )
    (tmp_path / NAME).write_bytes(sample_of(frames[0]))
    assert last_line(tmp_path) == 2


def test_no_sample_and_odd_files_give_no_line(tmp_path: Path) -> None:
    assert last_line(tmp_path) is None
    secret = tmp_path / "secret"
    secret.write_text('File "/x/kernel.py", line 5')
    (tmp_path / NAME).symlink_to(secret)
    assert last_line(tmp_path) is None
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).write_bytes(b"\xff most recent call first \x00")
    assert last_line(tmp_path) is None
