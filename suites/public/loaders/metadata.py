"""Reads the JSON files of public suites; a file that is missing or damaged becomes a note."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from suites.public.loading import Loading

Row = TypeVar("Row")


def read_rows(loading: Loading, path: Path, row: type[Row]) -> list[Row]:
    """Return the objects of a JSON array. If it cannot be read, return none and add a note."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[row])  # type: ignore[valid-type]
    except FileNotFoundError:
        loading.note(f"{path} is missing")
    except (OSError, msgspec.DecodeError) as error:
        loading.note(f"{path} cannot be read: {error}")
    return []


def first_sentence(text: str, most: int = 90) -> str:
    """Return the first sentence of a text on one line, cut after `most` characters."""
    line = " ".join(text.split())
    sentence = line.partition(". ")[0].removesuffix(".")
    return sentence if len(sentence) <= most else sentence[: most - 1].rstrip() + "…"


def described(texts: Mapping[str, str]) -> str:
    """Return an instruction of headed paragraphs, as TritonBench-T writes them; empty paragraphs are left out."""
    return "\n".join(f"{heading}: {text.strip()}" for heading, text in texts.items() if text.strip())
