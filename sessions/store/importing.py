"""Writes commits through `git fast-import`: many at once, in one pack, and with the ids that single writes give."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO

from git import Repo

MARKS = "marks"
"""File in which git notes the id of each commit."""


class ImportStream:
    """Takes commits and hands them to git; a commit is named by its mark until git is done."""

    def __init__(self, pipe: IO[bytes], author: str) -> None:
        self._pipe = pipe
        self._author = author
        self._numbers = count(1)
        self.ids: dict[int, str] = {}
        """Id of the commit of each mark; filled when git is done."""

    def commit(
        self,
        branch: str,
        files: Mapping[str, bytes],
        parents: Sequence[int],
        message: str,
        wall: float,
        *,
        afresh: bool,
    ) -> int:
        """Add a commit and return its mark. It has the files of its first parent too, unless it begins `afresh`."""
        mark, ref = next(self._numbers), f"refs/heads/{branch}"
        who = f"{self._author} {int(wall)} +0000"
        # Without the reset, git takes the branch's newest commit as the parent.
        self._write(f"reset {ref}\n\ncommit {ref}\nmark :{mark}\nauthor {who}\ncommitter {who}\n")
        self._data((message.rstrip("\n") + "\n").encode())
        links = ("from", *["merge"] * len(parents))
        self._write("".join(f"{link} :{parent}\n" for link, parent in zip(links, parents, strict=False)))
        if afresh and parents:
            self._write("deleteall\n")
        for path, data in files.items():
            self._write(f"M 100644 inline {path}\n")
            self._data(data)
        return mark

    def _data(self, data: bytes) -> None:
        self._write(f"data {len(data)}\n")
        self._pipe.write(data + b"\n")

    def _write(self, text: str) -> None:
        self._pipe.write(text.encode())


@contextmanager
def import_into(repo: Repo, *, author: str) -> Iterator[ImportStream]:
    """Yield a stream of commits into an empty repository, which has them in one pack after the block.

    Raises git's errors, as GitPython does.
    """
    marks = Path(repo.git_dir) / MARKS
    options = ["--quiet", "--done", f"--export-marks={marks}"]
    # Else few objects would be written one by one.
    command = ["git", "-c", "fastimport.unpackLimit=1", "fast-import", *options]
    process = repo.git.execute(command, as_process=True, istream=subprocess.PIPE)
    pipe = process.stdin
    stream = ImportStream(pipe, author)
    try:
        yield stream
        stream._write("done\n")
    except BrokenPipeError:
        pass  # git ended early; its error is raised below
    finally:
        pipe.close()
    process.wait()
    lines = (line.split() for line in marks.read_text().splitlines())
    stream.ids = {int(mark[1:]): sha for mark, sha in lines}
