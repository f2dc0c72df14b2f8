"""The 1-shot example: the most similar correct kernel of a corpus that does not overlap the tasks under test.

The corpus is the baselines of loaded tasks that are not under test, and what a folder holds that a person names. GEAK found
similarity of code to serve better than similarity of instructions, so instructions decide only while there is no code yet
(GEAK paper, knowledge injection). Documents are scored by Okapi BM25 (Robertson and Zaragoza, 2009), by the library bm25s
with its Lucene weights, which are never negative.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import UsageProblem
from engine.overlap import WORD, code_tokens, defined, kernel_forms, overlaps
from engine.profiles import bound_module, task_module
from engine.prompting import Example
from suites import Task, baseline_source

if TYPE_CHECKING:
    import bm25s

K1 = 1.5
B = 0.75
MOST_BYTES = 32_768
"""Of a file in a folder: a longer one would crowd the task out of a prompt."""


MOST_TOLD = 8
"""Files that were left out, by name."""


class Document(NamedTuple):
    """A kernel with the words that describe it."""

    task: str
    """Full name of a task, or the file's path in its folder."""
    title: str
    words: tuple[str, ...]
    code: tuple[str, ...]
    source: str
    module: str = ""
    bound: str = ""
    """As in `Example`."""


class Corpus:
    """Kernels that may be shown as an example."""

    def __init__(self, documents: Sequence[Document], skipped: Sequence[str] = ()) -> None:
        self.documents = tuple(sorted(documents))
        self.skipped = tuple(skipped)
        """What was left out of a folder and why, one sentence each, for people."""
        self._indices: dict[str, bm25s.BM25] = {}

    def by_instruction(self, task: Task) -> Example | None:
        """The example whose words are most like the task's; `None` when none shares a word with it."""
        return self._most_similar(words_of(task), "words")

    def by_code(self, source: str) -> Example | None:
        """The example whose code is most like this one; `None` when none shares a token with it."""
        return self._most_similar(code_tokens(source), "code")

    def remarks(self) -> tuple[str, ...]:
        """`skipped`, shortened to what a person reads."""
        told, more = self.skipped[:MOST_TOLD], len(self.skipped) - MOST_TOLD
        return (*told, f"{more} more files of the corpus are no examples") if more > 0 else told

    def _most_similar(self, query: Sequence[str], part: str) -> Example | None:
        scores = self.scores(query, part)
        best = max(range(len(scores)), key=lambda place: scores[place], default=None)
        if best is None or scores[best] <= 0:
            return None
        found = self.documents[best]
        return Example(found.title, found.source, found.module, found.bound)

    def scores(self, query: Sequence[str], part: str) -> list[float]:
        """Score of each document's `words` or `code` for the query; 0 where they share nothing."""
        texts: list[tuple[str, ...]] = [getattr(document, part) for document in self.documents]
        if not query or not any(texts):
            return [0.0] * len(texts)
        if part not in self._indices:
            # It brings numpy, which only a running engine needs. Where it finds JAX it computes with it when it is imported, and JAX
            # takes most of a GPU's memory for itself: candidates would have none.
            sys.modules.setdefault("jax", None)  # type: ignore[arg-type]  # `None` is how an import is told that there is none
            import bm25s

            index = bm25s.BM25(method="lucene", k1=K1, b=B)
            index.index([list(text) for text in texts], show_progress=False)
            self._indices[part] = index
        return [float(score) for score in self._indices[part].get_scores(sorted(set(query)))]


def build_corpus(loaded: Sequence[Task], under_test: Sequence[Task], folder: Path | None = None) -> Corpus:
    """The baselines of `loaded` and the kernels in `folder`, without what overlaps the tasks under test.

    Out is what has the name of a task under test, what defines one of its entry points, and what holds a kernel that is
    nearly one of its baseline's (`engine.overlap`). `UsageProblem` when the folder is none.
    """
    tested = Tested(under_test)
    documents = []
    for task in loaded:
        source = baseline_source(task)
        if not tested.why_not(task.name, source):
            module = task_module(task) if len(task.entry_points) == 1 else ""
            bound = bound_module(task.entry_points[0]) if module else ""
            words, code = words_of(task), code_tokens(source)
            documents.append(Document(task.id, task.title, words, code, source, module, bound))
    skipped: list[str] = []
    for file in python_files(folder) if folder else ():
        name = str(file.relative_to(folder)) if folder else file.name
        source_or_why = read_kernel(file)
        if isinstance(source_or_why, Unfit):
            skipped.append(f"{name} is no example: {source_or_why.why}")
        elif why := tested.why_not(file.stem, source_or_why):
            skipped.append(f"{name} is left out: {why}")
        else:
            source = source_or_why
            documents.append(
                Document(name, title_of(name, source), spoken(source), code_tokens(source), source)
            )
    return Corpus(documents, skipped)


class Unfit(NamedTuple):
    """Why a file cannot be an example."""

    why: str


class Tested:
    """The tasks under test, as what an example must not be."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._names = {task.name for task in tasks}
        self._entry_points = {point.name for task in tasks for point in task.entry_points}
        self._forms = tuple(form for task in tasks for form in kernel_forms(baseline_source(task)))

    def why_not(self, name: str, source: str) -> str:
        """In which way a module overlaps them; empty where it does not."""
        if name in self._names:
            return f"it has the name of a task under test, {name}"
        if same := sorted(defined(source) & self._entry_points):
            return f"it defines {', '.join(same)}, which a task under test asks for"
        if overlaps(kernel_forms(source), self._forms):
            return "a kernel in it is a copy, or nearly one, of a kernel of a task under test"
        return ""


def check_folder(folder: Path) -> None:
    """`UsageProblem` when it is no folder."""
    if not folder.is_dir():
        raise UsageProblem(f"--corpus {folder} is no folder; name one that holds Triton kernels (*.py)")


def python_files(folder: Path) -> Iterator[Path]:
    """Every Python file below a folder, in order. `UsageProblem` when it is none."""
    check_folder(folder)
    return iter(sorted(file for file in folder.rglob("*.py") if file.is_file()))


def read_kernel(file: Path) -> str | Unfit:
    """The module in a file, or why it is no example."""
    try:
        content = file.read_bytes()
        source = content.decode("utf-8")
        compile(source, file.name, "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
    except OSError as error:
        return Unfit(f"it cannot be read ({error.strerror})")
    except UnicodeDecodeError:
        return Unfit("it is no text in UTF-8")
    except (SyntaxError, ValueError, RecursionError):
        return Unfit("Python cannot read it")
    if len(content) > MOST_BYTES:
        return Unfit(f"it has {len(content)} bytes, and {MOST_BYTES} are the most that fit a prompt")
    if not kernel_forms(source):
        return Unfit("it holds no function with @triton.jit")
    return source


def title_of(name: str, source: str) -> str:
    """The first line of a module's docstring, else the file's name."""
    words = ast.get_docstring(ast.parse(source)) or ""
    return words.partition("\n")[0].rstrip(". ") or name


def spoken(source: str) -> tuple[str, ...]:
    """Words of a module's docstring and of the names of its functions."""
    words = ast.get_docstring(ast.parse(source)) or ""
    return tuple(WORD.findall(f"{words} {' '.join(sorted(defined(source)))}".lower().replace("_", " ")))


def words_of(task: Task) -> tuple[str, ...]:
    """Words of what a task asks for."""
    return tuple(WORD.findall(f"{task.title} {task.category} {task.instruction}".lower()))
