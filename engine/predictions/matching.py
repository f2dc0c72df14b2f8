"""Reads a file of predictions; finds the task of each, and the candidate in its text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.errors import UsageProblem
from engine.reply.candidate import Unusable, read_reply
from suites.public.loaders.traces import ENTRY, Solution
from suites.public.recorded import text_digest
from suites.public.task import PublicTask

_COMMENT = re.compile(r"#.*")
_DESCRIPTION = re.compile(r"Functional Description:(.*?)Wrapper Entry Information:", re.DOTALL)
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """A prediction for a known task."""

    public: PublicTask
    number: int
    """1, 2, ... among the predictions for its task, in the order of the file."""
    place: str
    """The place of the prediction: `line 3`."""
    source: str
    """The candidate; empty if the prediction has none."""
    unusable: str
    """Kind of the reason why there is no candidate, see `engine.reply.candidate.Unusable`; empty if there is one."""
    message: str
    """The reason in words."""

    @property
    def name(self) -> str:
        """`scale`, or `scale sample 2`."""
        return self.public.name + (f" sample {self.number}" if self.number > 1 else "")

    def key(self, protocol: str, seed: int) -> str:
        """Return a digest of everything that the result depends on, except the device and the judge."""
        text = f"{protocol} {seed} {text_digest(self.public)}\n{self.source}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class TaskIndex:
    """Finds tasks by the names and texts that predictions have."""

    def __init__(self, tasks: Sequence[PublicTask]) -> None:
        self._by_name: dict[str, list[PublicTask]] = {}
        for task in tasks:
            path = _plain_name(task.file)
            for name in {path, path.rpartition("/")[2], task.name, task.id}:
                self._by_name.setdefault(name, []).append(task)
        self._references = [
            (task, _plain_text(task.reference.text), _plain_code(task.reference.text))
            for task in tasks
            if task.reference is not None
        ]
        self._instructions = [(task, _plain_text(task.instruction)) for task in tasks if task.instruction]

    def find(self, prediction: Prediction) -> PublicTask | str:
        """Return the task of a prediction, or a line that says why there is none."""
        if prediction.file:
            return self._by_file(prediction)
        if prediction.label:
            if "\n" not in prediction.label and len(prediction.label) < _LONGEST_NAME:
                return self._by_file(prediction)
            return self._by_reference(prediction)
        return self._by_description(prediction)

    def _by_file(self, prediction: Prediction) -> PublicTask | str:
        file = prediction.file or prediction.label
        name = _plain_name(file)
        tasks = self._by_name.get(name) or self._by_name.get(name.rpartition("/")[2], [])
        if len(tasks) == 1:
            return tasks[0]
        if tasks:
            files = ", ".join(task.file for task in tasks)
            return f"{prediction.place}: {file!r} is the name of {files}; write the folder too"
        return f"{prediction.place}: the suite has no task {file!r}"

    def _by_reference(self, prediction: Prediction) -> PublicTask | str:
        """Find the task by its reference. A label may lack the comments, the first lines or the last lines."""
        label, code = _plain_text(prediction.label), _plain_code(prediction.label)
        tasks = (
            [task for task, text, _ in self._references if text == label]
            or [task for task, _, plain in self._references if plain == code]
            or [task for task, _, plain in self._references if code in plain]
        )
        if len(tasks) == 1:
            return tasks[0]
        number = f"{len(tasks)} references" if tasks else "no reference"
        return f"{prediction.place}: `label` is the text of {number} of the suite; add `file`"

    def _by_description(self, prediction: Prediction) -> PublicTask | str:
        """Find the task by the description in the prompt: predictions for TritonBench-T have no other name."""
        descriptions = _DESCRIPTION.findall(prediction.prompt)
        description = _plain_text(descriptions[-1]) if descriptions else ""
        tasks = [task for task, text in self._instructions if description and description in text]
        if len(tasks) == 1:
            return tasks[0]
        return f"{prediction.place} names no task: it needs `file`, or `label` with the reference"


def match(predictions: Iterable[Prediction], tasks: Sequence[PublicTask]) -> tuple[list[Sample], list[str]]:
    """Return the samples, and a line for each prediction without a task."""
    index = TaskIndex(tasks)
    samples, problems = [], []
    counts: Counter[str] = Counter()
    for prediction in predictions:
        task = index.find(prediction)
        if isinstance(task, str):
            problems.append(task)
            continue
        counts[task.id] += 1
        samples.append(_sample(task, counts[task.id], prediction))
    return samples, problems


def _sample(task: PublicTask, number: int, prediction: Prediction) -> Sample:
    text = prediction.text
    if text.strip() and "```" not in text:
        return Sample(task, number, prediction.place, text, "", "")
    candidate = read_reply(text, [entry.name for entry in task.entry_points])
    if isinstance(candidate, Unusable):
        message = {"empty": "the prediction is empty"}.get(candidate.reason, "the prediction has no code")
        return Sample(task, number, prediction.place, "", candidate.reason, message)
    return Sample(task, number, prediction.place, candidate.source, "", "")


def _plain_name(name: str) -> str:
    return name.strip().replace("\\", "/").lower().removesuffix(".py").removeprefix("./")


def _plain_code(text: str) -> str:
    return _plain_text(_COMMENT.sub("", text))


def _plain_text(text: str) -> str:
    return "".join(text.split())


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


class ReadPredictions(NamedTuple):
    """The predictions of a file in order, and one line for each part that is not a prediction."""

    predictions: tuple[Prediction, ...]
    problems: tuple[str, ...]


def read_predictions(path: Path) -> ReadPredictions:
    """Return the predictions of a file in JSON Lines, of a JSON array, or of a folder of solutions or KernelBench's kernels.

    Raises `UsageProblem` if the path cannot be read at all.
    """
    try:
        if path.is_dir():
            return _read_folder(path)
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageProblem(
            f"there is no file {path}; predictions are a JSONL file or a JSON array"
        ) from error
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read ({error.strerror}); fix its permissions") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.lstrip().startswith(b"["):
        return _read_array(path, data)
    if data.lstrip().startswith(b"{\n"):
        return _collect([(path.name, data)])
    return _collect(
        (f"line {number}", line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()
    )


def _read_array(path: Path, data: bytes) -> ReadPredictions:
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} starts as a JSON array, but cannot be read: {error}") from error
    return _collect((f"item {number}", bytes(item)) for number, item in enumerate(items, 1))


def _collect(items: Iterable[tuple[str, bytes]]) -> ReadPredictions:
    predictions, problems = [], []
    for place, item in items:
        prediction = _read_item(place, item)
        if isinstance(prediction, Prediction):
            predictions.append(prediction)
        else:
            problems.append(prediction)
    return ReadPredictions(tuple(predictions), tuple(problems))


def _read_item(place: str, item: bytes) -> Prediction | str:
    try:
        fields = msgspec.json.decode(item)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"{place} is not JSON: {error}"
    if not isinstance(fields, dict):
        return f"{place} is not a JSON object"
    if "sources" in fields:
        return _read_solution(place, item)
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


def _read_solution(place: str, item: bytes) -> Prediction | str:
    """Read a solution of a trace set: one file, and a function that returns its outputs."""
    try:
        solution = msgspec.json.decode(item, type=Solution)
    except msgspec.DecodeError as error:
        return f"{place} is no solution: {error}"
    if solution.spec.get("destination_passing_style", True):
        return (
            f"{place}: solution {solution.name} gets its outputs as arguments; its function must return them"
        )
    if len(solution.sources) != 1:
        return f"{place}: solution {solution.name} has {len(solution.sources)} files; it must be one"
    function = str(solution.spec.get("entry_point")).rpartition("::")[2]
    text = solution.sources[0].get("content", "") + f"\n{ENTRY} = {function}\n" * (function != ENTRY)
    return Prediction(place, text, file=solution.definition)


def _read_folder(folder: Path) -> ReadPredictions:
    """Read a folder of solutions, or of a run of KernelBench, which has a file for each sample. Other files are left out."""
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
    if not files and (solutions := sorted(folder.rglob("*.json"))):
        return _collect((path.name, path.read_bytes()) for path in solutions)
    if not files:
        raise UsageProblem(
            f"{folder} has no solution in JSON, and no file with a name such as level_1_problem_3_sample_0_kernel.py"
        )
    return ReadPredictions(tuple(predictions), tuple(problems))
