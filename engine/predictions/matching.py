"""Finds the task of a prediction, and the candidate in its text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.predictions.reading import Prediction
from engine.reply.candidate import Unusable, read_reply
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
