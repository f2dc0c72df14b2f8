"""Documents that commands write to files that a person named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sessions.files import write_whole
from tui.diagnostics import Complaint


def write_document(file: Path, data: bytes, name: str) -> None:
    """Write the whole document, or leave the file as it was; an existing file is replaced. Raises `Complaint`."""
    if file.exists() and not file.is_file():
        raise Complaint(f"{name} was not written: {file} is not a file")
    try:
        write_whole(file.resolve(), data, mode=0o666 & ~_umask())
    except OSError as error:
        raise Complaint(f"{name} was not written to {file}: {error.strerror or error}") from error


def check_new_folder(folder: Path) -> None:
    """Raise `Complaint` unless the folder is empty or does not exist."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Complaint(f"{folder} is not an empty folder; name a new one")


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files into a new or empty folder, by their paths in it. Raises `Complaint`."""
    check_new_folder(folder)
    for name, text in texts.items():
        file = folder / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise Complaint(f"{file} was not written: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
