"""Reads a file of predictions. Each line that cannot be used gives a problem; all other lines are read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.errors import UsageProblem

KERNELBENCH_FILE = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_PROMPTS = ("instruction", "prompt")
_END_MARKS = re.compile(r"<\|(?:im_end|EOT)\|>")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction, with the fields of its file."""

    place: str
    """`line 3`, `item 3`, or the name of a file."""
    text: str
    """A model's reply, or code."""
    file: str = ""
    """Name of the task, with or without folder and `.py`; empty if unknown."""
    label: str = ""
    """Text of the task's reference; empty if unknown."""
    prompt: str = ""
    """The prompt that was answered; empty if unknown."""


class Reading(NamedTuple):
    """The predictions of a file in order, and one line for each part that is not a prediction."""

    predictions: tuple[Prediction, ...]
    problems: tuple[str, ...]


def read_predictions(path: Path) -> Reading:
    """Return the predictions of a file in JSON Lines, of a JSON array, or of KernelBench's folder of kernels.

    Raises `UsageProblem` if the path cannot be read at all.
    """
    try:
        if path.is_dir():
            return _read_folder(path)
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageProblem(f"there is no file {path}; --predictions needs a JSONL file") from error
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read ({error.strerror}); fix its permissions") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.lstrip().startswith(b"["):
        return _read_array(path, data)
    return _collect(
        (f"line {number}", line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()
    )


def _read_array(path: Path, data: bytes) -> Reading:
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} starts as a JSON array, but cannot be read: {error}") from error
    return _collect((f"item {number}", bytes(item)) for number, item in enumerate(items, 1))


def _collect(items: Iterable[tuple[str, bytes]]) -> Reading:
    predictions, problems = [], []
    for place, item in items:
        prediction = _read_item(place, item)
        if isinstance(prediction, Prediction):
            predictions.append(prediction)
        else:
            problems.append(prediction)
    return Reading(tuple(predictions), tuple(problems))


def _read_item(place: str, item: bytes) -> Prediction | str:
    try:
        fields = msgspec.json.decode(item)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"{place} is not JSON: {error}"
    if not isinstance(fields, dict):
        return f"{place} is not a JSON object"
    if "predict" not in fields:
        return f"{place} has no `predict`"
    text = fields["predict"]
    if not (text is None or isinstance(text, str)):
        return f"{place}: `predict` is not a text"
    prompt = next((fields[key] for key in _PROMPTS if isinstance(fields.get(key), str)), "")
    file, label = (value if isinstance(value := fields.get(key), str) else "" for key in ("file", "label"))
    return Prediction(
        place,
        _END_MARKS.sub("", text or ""),
        file=file.strip(),
        label=_END_MARKS.sub("", label).strip(),
        prompt=prompt,
    )


def _read_folder(folder: Path) -> Reading:
    """Read the folder of a run of KernelBench, which has a file for each sample. Files with other names are left out."""
    files = []
    for path in folder.iterdir():
        match = KERNELBENCH_FILE.fullmatch(path.name)
        if match:
            files.append((tuple(map(int, match.groups())), path))
    predictions, problems = [], []
    for (level, problem, _), path in sorted(files):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path.name} cannot be read: {error}")
            continue
        predictions.append(Prediction(path.name, text, file=f"level{level}_{problem}"))
    if not files:
        raise UsageProblem(f"{folder} has no file with a name such as level_1_problem_3_sample_0_kernel.py")
    return Reading(tuple(predictions), tuple(problems))
