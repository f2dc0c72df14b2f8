"""The 1-shot example is similar, and never a solution of a task under test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageProblem
from engine.overlap import NEAR_COPY, code_tokens, kernel_forms, normal_form, overlaps, similarity
from engine.retrieval import MOST_BYTES, Corpus, Document, build_corpus
from suites import Task, baseline_source, load_suite, load_task

KERNEL = '''"""Doubles every element."""
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def double(x):
    return x
'''


@pytest.fixture(scope="module")
def starter() -> tuple[Task, ...]:
    return load_suite("starter")


def solution(task: Task) -> str:
    """The task's baseline under names that say nothing."""
    source = baseline_source(task)
    for number, entry in enumerate(task.entry_points):
        source = re.sub(rf"\b{entry.name}\b", f"entry_{number}", source)
    return source


def renamed(source: str) -> str:
    return re.sub(r"\b(x|out|x_ptr|out_ptr|a_ptr|mask|offsets|rows|columns)\b", r"my_\1", source)


def other_constants(source: str) -> str:
    return re.sub(r"(?<=[=( ])(?:16|32|64|128|256|1024)\b", "8", source)


def commented(source: str) -> str:
    return "# mine\n\n" + re.sub(r"^(    \w.* = .*[^(,\\])$", r"\1  # why", source, flags=re.MULTILINE)


def wider_layout(source: str) -> str:
    return re.sub(r"^( +)", r"\1\1", source, flags=re.MULTILINE)


def one_line_more(source: str) -> str:
    return re.sub(r"^(    tl\.store\()", r"    tl.debug_barrier()\n\1", source, count=1, flags=re.MULTILINE)


def beside_another(source: str) -> str:
    return source + "\n\n" + KERNEL.partition("\n\n\n")[2]


PLANTS = (str, renamed, other_constants, commented, wider_layout, one_line_more, beside_another)


def test_no_task_under_test_is_in_the_corpus(starter: tuple[Task, ...]) -> None:
    for task in starter:
        corpus = build_corpus(starter, [task])
        assert {document.task for document in corpus.documents} == {other.id for other in starter} - {task.id}
        example = corpus.by_instruction(task)
        assert example is not None
        assert not overlaps(kernel_forms(example.source), kernel_forms(baseline_source(task)))


@pytest.mark.parametrize("name", ["softmax", "matmul", "layer_norm", "matmul_w8a8"])
def test_planted_copies_are_left_out_and_told(name: str, tmp_path: Path) -> None:
    task = load_task(name)
    planted = {}
    for change in PLANTS:
        file = tmp_path / "deep" / f"{change.__name__}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(planted.setdefault(file.name, change(solution(task))))
    assert len(set(planted.values())) >= len(PLANTS) - 1, "a plant that changes nothing shows nothing"
    (tmp_path / "double.py").write_text(KERNEL)
    corpus = build_corpus([], [task], tmp_path)
    assert [document.task for document in corpus.documents] == ["double.py"]
    assert len(corpus.skipped) == len(PLANTS)
    assert all("copy, or nearly one" in words for words in corpus.skipped)
    elsewhere = build_corpus([], [load_task("vector_add")], tmp_path)
    assert len(elsewhere.documents) == len(PLANTS) + 1, "what overlaps no task under test stays"


def test_a_task_of_the_same_name_elsewhere_is_left_out() -> None:
    softmax = load_task("softmax")
    elsewhere = msgspec.structs.replace(load_task("flip"), suite="mine", name="softmax")
    assert build_corpus([elsewhere], [softmax]).documents == ()


def test_a_copy_under_another_tasks_name_is_left_out() -> None:
    softmax = load_task("softmax")
    copy = msgspec.structs.replace(softmax, suite="mine", name="normalise_rows", entry_points=())
    assert build_corpus([copy], [softmax]).documents == ()
    assert len(build_corpus([copy], [load_task("matmul")]).documents) == 1


def test_a_file_with_a_name_under_test_or_its_entry_point_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(KERNEL)
    (tmp_path / "rows.py").write_text(KERNEL.replace("def double(", "def softmax("))
    corpus = build_corpus([], [load_task("softmax")], tmp_path)
    assert corpus.documents == ()
    assert corpus.skipped == (
        "rows.py is left out: it defines softmax, which a task under test asks for",
        "softmax.py is left out: it has the name of a task under test, softmax",
    )


def test_files_that_are_no_example_are_skipped_and_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "long.py").write_text(KERNEL + "#" * MOST_BYTES)
    (tmp_path / "plain.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "torn.py").write_text("def f(:\n")
    (tmp_path / "notes.txt").write_text("no Python")
    (tmp_path / "twice.py").write_text(KERNEL)
    corpus = build_corpus([], [load_task("softmax")], tmp_path)
    assert [(document.task, document.title) for document in corpus.documents] == [
        ("twice.py", "Doubles every element")
    ]
    assert [words.partition(" is not an example: ")[::2] for words in corpus.skipped] == [
        ("bytes.py", "it is not UTF-8 text"),
        (
            "long.py",
            f"it has {len(KERNEL) + MOST_BYTES} bytes, more than the {MOST_BYTES} that fit a prompt",
        ),
        ("plain.py", "it has no function with @triton.jit"),
        ("torn.py", "Python cannot parse it"),
    ]


def test_many_files_that_are_no_examples_are_counted(tmp_path: Path) -> None:
    for number in range(11):
        (tmp_path / f"plain{number:02}.py").write_text("x = 1\n")
    remarks = build_corpus([], [load_task("softmax")], tmp_path).remarks()
    assert len(remarks) == 9
    assert remarks[-1] == "3 more files of the corpus were skipped"


def test_a_folder_that_is_none_is_a_usage_problem(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"--corpus .*missing is not a folder"):
        build_corpus([], [load_task("softmax")], tmp_path / "missing")


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


def test_starter_kernels_are_no_copies_of_each_other(starter: tuple[Task, ...]) -> None:
    forms = [kernel_forms(baseline_source(task)) for task in starter]
    assert all(forms)
    for place, one in enumerate(forms):
        for other in forms[place + 1 :]:
            assert not overlaps(one, other)


def test_normal_form_sees_through_names_numbers_comments_and_layout_only() -> None:
    one = "def f(x, y):\n    '''Doc.'''\n    return tl.exp(x * 2) + y  # sum\n"
    assert normal_form(one) == normal_form("# mine\n\ndef g(a, b):\n  return language.exp(a * 0.5) + b\n")
    assert normal_form(one) != normal_form(one.replace("exp", "log"))
    assert normal_form(one) != normal_form(one.replace("+ y", "- y"))
    assert normal_form(one) != normal_form(one.replace("+ y", ""))


def test_similarity_is_one_for_the_same_and_falls_with_every_change() -> None:
    [whole] = kernel_forms(KERNEL)
    [changed] = kernel_forms(KERNEL.replace(" * 2", " * 2 + tl.exp(n)"))
    [another] = kernel_forms(baseline_source(load_task("matmul")))
    assert similarity(whole, whole) == 1
    assert 1 > similarity(whole, changed) > similarity(whole, another)
    assert similarity(whole, another) < NEAR_COPY


def test_code_that_python_cannot_read_still_has_tokens() -> None:
    assert "softmax" in code_tokens("def softmax(x:\n   '''")
    assert kernel_forms("def softmax(x:\n") == ()


WORDS = st.lists(st.sampled_from(["load", "store", "dot", "exp", "sum"]), max_size=8)


@given(WORDS, st.lists(WORDS, max_size=6))
def test_scores_are_positive_where_words_are_shared(query: list[str], texts: list[list[str]]) -> None:
    corpus = Corpus([Document(str(at), "", tuple(text), (), "") for at, text in enumerate(texts)])
    scores = corpus.scores(query, "words")
    assert [score > 0 for score in scores] == [bool(set(query) & set(text)) for text in texts]
    assert all(score >= 0 for score in scores)


def test_an_empty_corpus_has_no_example() -> None:
    assert Corpus([]).by_code("x = 1") is None


def test_ranking_is_loaded_when_it_is_needed() -> None:
    code = "import engine.retrieval, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"bm25s", "numpy"} & set(done.stdout.split())


def test_ranking_leaves_jax_alone_which_would_take_the_gpus_memory(tmp_path: Path) -> None:
    fake = tmp_path / "jax"
    fake.mkdir()
    (fake / "__init__.py").write_text(
        "import pathlib; (pathlib.Path(__file__).parent / 'imported').touch()\n"
    )
    (fake / "lax.py").write_text("def top_k(scores, count):\n    return scores, scores\n")
    code = (
        "from engine.retrieval import Corpus, Document\n"
        "print(Corpus([Document('a', '', ('load', 'dot'), (), ''), Document('b', '', ('exp',), (), '')]).scores(['dot'], 'words'))"
    )
    paths = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    first, second = json.loads(done.stdout)
    assert first > 0 == second
    assert not (fake / "imported").exists()
