"""The corpus of 1-shot examples: finds the most similar correct kernel that does not overlap the tasks under test.

The corpus has the baselines of loaded tasks that are not under test, and the kernels in a folder that a person names.
GEAK found that similar code helps more than similar instructions. So instructions are compared only while there is no
code (GEAK paper, knowledge injection). The score is Okapi BM25 (Robertson and Zaragoza, 2009) from the library bm25s,
with Lucene's weights, which are never negative.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import UsageProblem
from engine.overlap import WORD, code_tokens, function_names, kernel_forms, overlaps
from engine.profiles import bound_module, task_module
from engine.prompting import Example
from suites import Task, baseline_source
from suites.python_source import parse_python

if TYPE_CHECKING:
    import bm25s

K1 = 1.5
B = 0.75
MOST_BYTES = 32_768
"""Largest file of a folder; a larger example would leave too little of a prompt for the task."""
MOST_REPORTED = 8
"""Skipped files that are reported by name."""


class Document(NamedTuple):
    """A kernel, and the words and tokens by which it is found."""

    task: str
    """Full name of a task, or the file's path in its folder."""
    title: str
    words: tuple[str, ...]
    code: tuple[str, ...]
    source: str
    module: str = ""
    bound: str = ""
    """See `Example`."""


class Corpus:
    """Kernels that may be shown as an example."""

    def __init__(self, documents: Sequence[Document], skipped: Sequence[str] = ()) -> None:
        self.documents = tuple(sorted(documents))
        self.skipped = tuple(skipped)
        """Files of the folder that are no examples, each with its reason in one sentence, for people."""
        self._indices: dict[str, bm25s.BM25] = {}

    def by_instruction(self, task: Task) -> Example | None:
        """Returns the example whose instruction is most similar to the task's by BM25; `None` if none shares a word with it."""
        return self._most_similar(_task_words(task), "words")

    def by_code(self, source: str) -> Example | None:
        """Returns the example whose code is most similar to `source` by BM25; `None` if none shares a token with it."""
        return self._most_similar(code_tokens(source), "code")

    def remarks(self) -> tuple[str, ...]:
        """Returns `skipped`, shortened for people."""
        reported, more = self.skipped[:MOST_REPORTED], len(self.skipped) - MOST_REPORTED
        return (*reported, f"{more} more files of the corpus were skipped") if more > 0 else reported

    def _most_similar(self, query: Sequence[str], part: str) -> Example | None:
        scores = self.scores(query, part)
        best = max(range(len(scores)), key=lambda place: scores[place], default=None)
        if best is None or scores[best] <= 0:
            return None
        document = self.documents[best]
        return Example(document.title, document.source, document.module, document.bound)

    def scores(self, query: Sequence[str], part: str) -> list[float]:
        """Returns the score of each document's `words` or `code` for the query; 0 without a common word."""
        texts: list[tuple[str, ...]] = [getattr(document, part) for document in self.documents]
        if not query or not any(texts):
            return [0.0] * len(texts)
        if part not in self._indices:
            # Imported here: bm25s loads numpy, which only a running engine needs. It also computes with JAX if it can import
            # JAX, and JAX would take most of a GPU's memory from the candidates.
            sys.modules.setdefault("jax", None)  # type: ignore[arg-type]  # `None` makes `import jax` fail
            import bm25s

            index = bm25s.BM25(method="lucene", k1=K1, b=B)
            index.index([list(text) for text in texts], show_progress=False)
            self._indices[part] = index
        return [float(score) for score in self._indices[part].get_scores(sorted(set(query)))]


def build_corpus(loaded: Sequence[Task], under_test: Sequence[Task], folder: Path | None = None) -> Corpus:
    """Returns the baselines of `loaded` and the kernels in `folder`, without overlaps with the tasks under test.

    A kernel overlaps if it has the name of a task under test, defines one of its entry points, or nearly copies a
    kernel of its baseline (`engine.overlap`). Answers of a public benchmark are no examples. Raises `UsageProblem` if the
    folder does not exist.
    """
    tested = Tested(under_test)
    documents = []
    for task in loaded:
        if task.script is not None and task.script.hides_baseline:
            continue
        source = baseline_source(task)
        if not tested.overlap_reason(task.name, source):
            module = task_module(task) if len(task.entry_points) == 1 else ""
            bound = bound_module(task.entry_points[0]) if module else ""
            words, code = _task_words(task), code_tokens(source)
            documents.append(Document(task.id, task.title, words, code, source, module, bound))
    skipped: list[str] = []
    for file in python_files(folder) if folder else ():
        name = str(file.relative_to(folder)) if folder else file.name
        kernel = read_example(file)
        if isinstance(kernel, Unfit):
            skipped.append(f"{name} is not an example: {kernel.why}")
        elif why := tested.overlap_reason(file.stem, kernel):
            skipped.append(f"{name} is left out: {why}")
        else:
            documents.append(
                Document(name, _title(name, kernel), _docstring_words(kernel), code_tokens(kernel), kernel)
            )
    return Corpus(documents, skipped)


class Unfit(NamedTuple):
    """Why a file cannot be an example."""

    why: str


class Tested:
    """The tasks under test; an example must not overlap them."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._names = {task.name for task in tasks}
        self._entry_points = {point.name for task in tasks for point in task.entry_points}
        self._forms = tuple(form for task in tasks for form in kernel_forms(baseline_source(task)))

    def overlap_reason(self, name: str, source: str) -> str:
        """Returns how a module overlaps the tasks; empty if it does not."""
        if name in self._names:
            return f"it has the name of a task under test, {name}"
        if same := sorted(function_names(source) & self._entry_points):
            return f"it defines {', '.join(same)}, which a task under test asks for"
        if overlaps(kernel_forms(source), self._forms):
            return "a kernel in it is a copy, or nearly one, of a kernel of a task under test"
        return ""


def check_folder(folder: Path) -> None:
    """Raise `UsageProblem` if it is not a folder."""
    if not folder.is_dir():
        raise UsageProblem(f"--corpus {folder} is not a folder; name a folder with Triton kernels (*.py)")


def python_files(folder: Path) -> Iterator[Path]:
    """Returns every Python file below a folder, sorted; `UsageProblem` if it is not a folder."""
    check_folder(folder)
    return iter(sorted(file for file in folder.rglob("*.py") if file.is_file()))


def read_example(file: Path) -> str | Unfit:
    """Returns the module in a file, or why it cannot be an example."""
    try:
        content = file.read_bytes()
        source = content.decode("utf-8")
        parse_python(source, file.name)
    except OSError as error:
        return Unfit(f"it cannot be read ({error.strerror})")
    except UnicodeDecodeError:
        return Unfit("it is not UTF-8 text")
    except (SyntaxError, ValueError, RecursionError):
        return Unfit("Python cannot parse it")
    if len(content) > MOST_BYTES:
        return Unfit(f"it has {len(content)} bytes, more than the {MOST_BYTES} that fit a prompt")
    if not kernel_forms(source):
        return Unfit("it has no function with @triton.jit")
    return source


def _title(name: str, source: str) -> str:
    """The first line of the module's docstring, else the file's name."""
    words = ast.get_docstring(parse_python(source)) or ""
    return words.partition("\n")[0].rstrip(". ") or name


def _docstring_words(source: str) -> tuple[str, ...]:
    """Words of the docstring and of the names of functions."""
    words = ast.get_docstring(parse_python(source)) or ""
    return tuple(
        WORD.findall(f"{words} {' '.join(sorted(function_names(source)))}".lower().replace("_", " "))
    )


def _task_words(task: Task) -> tuple[str, ...]:
    return tuple(WORD.findall(f"{task.title} {task.category} {task.instruction}".lower()))
