"""The corpus of 1-shot examples: finds the most similar correct kernel that does not overlap the tasks under test.

The corpus has the baselines of loaded tasks that are not under test, and the kernels that a person names.
GEAK found that similar code helps more than similar instructions. So instructions are compared only while there is no
code (GEAK paper, knowledge injection). The score is Okapi BM25 (Robertson and Zaragoza, 2009) from the library bm25s,
with Lucene's weights, which are never negative.

A run with thousands of kernels must start at once. Only names are compared then; comparing the code takes longer than
all the rest. So near copies of a task's kernel stay in the index, and each search passes over those that it finds.
"""

from __future__ import annotations

import heapq
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.corpus.further_kernels import Unfit, further_kernels
from engine.corpus.overlap import WORD, Form, code_tokens, function_names, kernel_forms, overlaps
from engine.knowledge import Subject, pages_for
from engine.prompting.profiles import bound_module, task_module
from engine.prompting.prompting import Example
from engine.prompting.subject import named_subject, spaced
from engine.reply.module_text import parse_module
from suites import Task, baseline_source
from suites.public.task import PublicTask

if TYPE_CHECKING:
    import bm25s

K1 = 1.5
B = 0.75
MOST_COMPARED = 100
"""Kernels of the corpus that one search compares with the tasks under test: a search stops no engine for long."""
MOST_REPORTED = 8
"""Skipped files that are reported by name."""


class CorpusDocument(NamedTuple):
    """A kernel, and the words by which it is found."""

    task: str
    """Full name of a task, or the kernel's name in its corpus."""
    title: str
    words: tuple[str, ...]
    source: str
    module: str = ""
    bound: str = ""
    """See `Example`."""
    topics: frozenset[str] = frozenset()
    """See `topics_of`."""


class Index:
    """Scores texts by BM25. The first search builds it, or another thread before."""

    def __init__(self, texts: Callable[[], Sequence[Sequence[str]]]) -> None:
        self._texts = texts
        self._building = threading.Lock()
        self._built: bm25s.BM25 | None = None

    def scores(self, query: Sequence[str]) -> list[float]:
        """Returns the score of each text for the query, 0 without a common word; nothing if no text has a word."""
        index = self.build() if query else None
        return [] if index is None else [float(score) for score in index.get_scores(sorted(set(query)))]

    def build(self) -> bm25s.BM25 | None:
        """Returns the index of the library; `None` if no text has a word."""
        with self._building:
            if self._built is None and any(texts := self._texts()):
                # Imported here: bm25s loads numpy, which only a running engine needs. It also computes with JAX if it can
                # import JAX, and JAX would take most of a GPU's memory from the candidates.
                is_hidden = "jax" not in sys.modules
                sys.modules.setdefault("jax", None)  # type: ignore[arg-type]  # `None` makes `import jax` fail
                import bm25s

                if is_hidden:
                    sys.modules.pop("jax", None)  # scipy fails with the entry
                self._built = bm25s.BM25(method="lucene", k1=K1, b=B)
                self._built.index(texts, show_progress=False)
            return self._built


class Corpus:
    """Kernels that may be shown as an example."""

    def __init__(
        self,
        documents: Sequence[CorpusDocument],
        skipped: Sequence[str] = (),
        references: Sequence[Form] = (),
    ) -> None:
        self.documents = tuple(sorted(documents))
        self.skipped = tuple(skipped)
        """Kernels that a person named and that are no examples, each with its reason in one sentence, for people."""
        self._references = tuple(references)
        """The kernels of the tasks under test."""
        self._words = Index(lambda: [document.words for document in self.documents])
        self._code = Index(lambda: [code_tokens(document.source) for document in self.documents])
        self._copies: dict[int, bool] = {}
        """The documents that were compared with the references, by place."""

    def prepare(self) -> None:
        """Build the indices, which takes seconds for thousands of kernels. Searches wait for them."""
        self._words.build()
        self._code.build()

    def by_instruction(self, task: Task) -> Example | None:
        """Returns the example that is most similar to the task; `None` if none shares a word with its instruction.

        Common topics come first, then few other topics, then the instruction by BM25: a long instruction shares words
        with every task.
        """
        topics = topics_of(named_subject(task))
        return self._most_similar(
            [
                (len(topics & document.topics), -len(document.topics - topics), score) if score > 0 else ()
                for score, document in zip(
                    self._words.scores(_task_words(task)), self.documents, strict=False
                )
            ]
        )

    def by_code(self, source: str) -> Example | None:
        """Returns the example whose code is most similar to `source` by BM25; `None` if none shares a token with it."""
        return self._most_similar(
            [(score,) if score > 0 else () for score in self._code.scores(code_tokens(source))]
        )

    def remarks(self) -> tuple[str, ...]:
        """Returns `skipped`, shortened for people."""
        reported, more = self.skipped[:MOST_REPORTED], len(self.skipped) - MOST_REPORTED
        return (*reported, f"{more} more kernels of the corpus were skipped") if more > 0 else reported

    def _most_similar(self, ranks: Sequence[tuple[float, ...]]) -> Example | None:
        """Return the example with the highest rank; an empty rank is none."""
        for place in heapq.nlargest(MOST_COMPARED, range(len(ranks)), key=ranks.__getitem__):
            if not ranks[place]:
                return None
            if not self._is_copy(place):
                document = self.documents[place]
                return Example(document.title, document.source, document.module, document.bound)
        return None

    def _is_copy(self, place: int) -> bool:
        if place not in self._copies:
            self._copies[place] = overlaps(kernel_forms(self.documents[place].source), self._references)
        return self._copies[place]


def build_corpus(
    loaded: Sequence[Task],
    under_test: Sequence[Task],
    further: Path | None = None,
    *,
    unrecorded: Sequence[PublicTask] = (),
) -> Corpus:
    """Returns the baselines of `loaded` and the kernels in `further`, of which no search finds an overlap with a task under test.

    A kernel overlaps if it has the name of a task under test, or defines one of its entry points. A near copy of a kernel
    of its baseline overlaps too (`engine.corpus.overlap`). No examples are answers of a public benchmark, PyTorch
    references, and modules of a package. `unrecorded`: further tasks under test. Raises `UsageProblem` if `further` is neither
    a folder nor a JSON array.
    """
    tested: Sequence[Task | PublicTask] = (*under_test, *unrecorded)
    names = {task.name for task in tested}
    entry_points = {point.name for task in tested for point in task.entry_points}

    def overlap_reason(name: str, functions: frozenset[str]) -> str:
        """Returns which name a module shares with the tasks under test; empty if it shares none."""
        if name in names:
            return f"it has the name of a task under test, {name}"
        if same := sorted(functions & entry_points):
            return f"it defines {', '.join(same)}, which a task under test asks for"
        return ""

    documents = []
    for task in loaded:
        if task.package is not None or (task.script is not None and task.script.hides_baseline):
            continue
        source = baseline_source(task)
        if not kernel_forms(source):
            continue  # PyTorch code shows no style of kernels
        if not overlap_reason(task.name, _functions(source)):
            module = task_module(task) if len(task.entry_points) == 1 else ""
            bound = bound_module(task.entry_points[0]) if module else ""
            topics = topics_of(named_subject(task))
            documents.append(
                CorpusDocument(task.id, task.title, _task_words(task), source, module, bound, topics)
            )
    skipped: list[str] = []
    for name, kernel in further_kernels(further) if further else ():
        if isinstance(kernel, Unfit):
            skipped.append(f"{name} is not an example: {kernel.why}")
        elif why := overlap_reason(Path(name).stem, kernel.functions):
            skipped.append(f"{name} is left out: {why}")
        else:
            subject = Subject("", spaced(Path(name).stem), "tl.dot" in kernel.source)
            documents.append(
                CorpusDocument(
                    name, kernel.title or name, kernel.words, kernel.source, topics=topics_of(subject)
                )
            )
    sources = [baseline_source(task) for task in under_test]
    sources += [task.reference.text for task in unrecorded if task.reference is not None]
    references = [form for source in sources for form in kernel_forms(source)]
    return Corpus(documents, skipped, references)


def topics_of(subject: Subject) -> frozenset[str]:
    """Returns the names of the knowledge pages that are about a subject; none for a subject without a page of its own."""
    return frozenset(page.name for page in pages_for(subject) if page.categories or page.products)


def _functions(source: str) -> frozenset[str]:
    tree = parse_module(source)
    return frozenset() if tree is None else function_names(tree)


def _task_words(task: Task) -> tuple[str, ...]:
    return tuple(WORD.findall(f"{task.title} {task.category} {task.instruction}".lower()))
