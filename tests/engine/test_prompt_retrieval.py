"""The 1-shot example is similar, and never a solution of a task under test."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval import Corpus, bm25, build_corpus, code_tokens, normal_form
from suites import Task, baseline_source, load_suite, load_task


@pytest.fixture(scope="module")
def starter() -> tuple[Task, ...]:
    return load_suite("starter")


def test_no_task_under_test_is_in_the_corpus(starter: tuple[Task, ...]) -> None:
    for task in starter:
        corpus = build_corpus(starter, [task])
        assert {document.task for document in corpus.documents} == {other.id for other in starter} - {task.id}
        example = corpus.by_instruction(task)
        assert example is not None
        assert normal_form(example.source) != normal_form(baseline_source(task))


def test_a_task_of_the_same_name_elsewhere_is_left_out(starter: tuple[Task, ...]) -> None:
    softmax = load_task("softmax")
    elsewhere = msgspec.structs.replace(softmax, suite="mine")
    assert build_corpus([elsewhere], [softmax]).documents == ()


def test_a_renamed_copy_is_left_out(starter: tuple[Task, ...]) -> None:
    softmax = load_task("softmax")
    copy = msgspec.structs.replace(softmax, suite="mine", name="normalise_rows")
    assert build_corpus([copy], [softmax]).documents == ()
    assert len(build_corpus([copy], [load_task("matmul")]).documents) == 1


def test_with_everything_under_test_there_is_no_example(starter: tuple[Task, ...]) -> None:
    corpus = build_corpus(starter, starter)
    assert corpus.by_instruction(starter[0]) is None
    assert corpus.by_code(baseline_source(starter[0])) is None


def test_code_finds_the_kernel_most_like_it(starter: tuple[Task, ...]) -> None:
    corpus = build_corpus(starter, [load_task("vector_add")])
    for name in ("softmax", "matmul"):
        example = corpus.by_code(re.sub(r"\bx\b", "inputs", baseline_source(load_task(name))))
        assert example is not None
        assert example.task == load_task(name).title


def test_normal_form_sees_through_names_comments_and_layout_only() -> None:
    one = "import triton.language as tl\ndef f(x, y):\n    '''Doc.'''\n    return tl.exp(x) + y  # sum\n"
    renamed = (
        "# mine\nimport triton.language as tl\n\ndef g(a, b):\n  c = 1\n  return tl.exp(a) + b\n".replace(
            "  c = 1\n", ""
        )
    )
    assert normal_form(one) == normal_form(renamed)
    assert normal_form(one) != normal_form(one.replace("exp", "log"))
    assert normal_form(one) != normal_form(one.replace("+ y", "+ x"))


def test_code_that_python_cannot_read_still_has_tokens() -> None:
    assert "softmax" in code_tokens("def softmax(x:\n   '''")


WORDS = st.lists(st.sampled_from(["load", "store", "dot", "exp", "sum"]), max_size=8)


@given(WORDS, st.lists(WORDS, max_size=6))
def test_scores_are_positive_where_words_are_shared(query: list[str], documents: list[list[str]]) -> None:
    scores = bm25(query, documents)
    assert [score > 0 for score in scores] == [bool(set(query) & set(document)) for document in documents]
    assert all(score >= 0 for score in scores)


def test_an_empty_corpus_has_no_example() -> None:
    assert Corpus([]).by_code("x = 1") is None
