"""The 1-shot example: the most similar correct kernel of a corpus that does not overlap the tasks under test.

The corpus is the baselines of loaded tasks that are not under test. GEAK found similarity of code to serve better than
similarity of instructions, so instructions decide only while there is no code yet (GEAK paper, knowledge injection).
Documents are scored by Okapi BM25 (Robertson and Zaragoza, 2009) with the usual constants. The few lines stand here
because the kept library for it, bm25s, brings numpy to every machine that only replays, for a corpus of some dozen files.
"""

from __future__ import annotations

import io
import keyword
import math
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.prompting import Example
from suites import Task, baseline_source

K1 = 1.5
B = 0.75
KEPT_NAMES = frozenset(
    {"tl", "triton", "torch", "math", "range", "float", "int", "min", "max", "len", "self"}
)
SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
WORD = re.compile(r"[a-z0-9]+")


class Document(NamedTuple):
    """A task's instruction and baseline."""

    task: str
    """Full name."""
    title: str
    words: tuple[str, ...]
    code: tuple[str, ...]
    source: str


class Corpus:
    """Kernels that may be shown as an example."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = tuple(sorted(documents))

    def by_instruction(self, task: Task) -> Example | None:
        """The example whose instruction is most like the task's; `None` when none shares a word with it."""
        return self._most_similar(words_of(task), lambda document: document.words)

    def by_code(self, source: str) -> Example | None:
        """The example whose code is most like this one; `None` when none shares a token with it."""
        return self._most_similar(code_tokens(source), lambda document: document.code)

    def _most_similar(
        self, query: Sequence[str], part: Callable[[Document], Sequence[str]]
    ) -> Example | None:
        scores = bm25(query, [part(document) for document in self.documents])
        best = max(range(len(scores)), key=lambda place: scores[place], default=None)
        if best is None or scores[best] <= 0:
            return None
        return Example(task=self.documents[best].title, source=self.documents[best].source)


def build_corpus(loaded: Sequence[Task], under_test: Sequence[Task]) -> Corpus:
    """The baselines of `loaded` without the tasks under test, those of the same name and those of the same code.

    Code is the same when it differs in nothing but names, comments and layout.
    """
    names = {task.name for task in under_test}
    forms = {normal_form(baseline_source(task)) for task in under_test}
    documents = []
    for task in loaded:
        source = baseline_source(task)
        if task.name not in names and normal_form(source) not in forms:
            documents.append(Document(task.id, task.title, words_of(task), code_tokens(source), source))
    return Corpus(documents)


def bm25(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Score of each document for the query; 0 where they share nothing. Never negative."""
    counts = [Counter(document) for document in documents]
    mean_length = sum(map(len, documents)) / len(documents) if documents else 0.0
    scores = [0.0] * len(documents)
    for term in set(query):
        having = sum(term in count for count in counts)
        weight = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for place, count in enumerate(counts):
            if term in count:
                damping = K1 * (1 - B + B * len(documents[place]) / mean_length)
                scores[place] += weight * count[term] * (K1 + 1) / (count[term] + damping)
    return scores


def words_of(task: Task) -> tuple[str, ...]:
    """Words of what a task asks for."""
    return tuple(WORD.findall(f"{task.title} {task.category} {task.instruction}".lower()))


def code_tokens(source: str) -> tuple[str, ...]:
    """Tokens of a module without comments, docstrings and layout. What Python cannot read gives its words."""
    try:
        tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type not in SILENT
        ]
    except (tokenize.TokenError, SyntaxError):
        return tuple(WORD.findall(source.lower()))
    return tuple(token.string for token in tokens if token.type != tokenize.STRING)


def normal_form(source: str) -> tuple[str, ...]:
    """The code with its own names numbered in order of appearance: equal for copies that were only renamed."""
    numbered: dict[str, str] = {}
    form = []
    before = ""
    for token in code_tokens(source):
        free = (
            token.isidentifier()
            and not keyword.iskeyword(token)
            and token not in KEPT_NAMES
            and before != "."
        )
        form.append(numbered.setdefault(token, f"v{len(numbered)}") if free else token)
        before = token
    return tuple(form)
