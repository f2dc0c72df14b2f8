"""Retrieval: the 1-shot example is similar to the task and never a solution of a task under test."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from engine.corpus.further_kernels import MOST_BYTES
from engine.corpus.overlap import kernel_forms, overlaps
from engine.corpus.retrieval import MOST_COMPARED, Corpus, build_corpus
from engine.errors import UsageProblem
from engine.methods import Context
from engine.methods.proposing import examples_of
from sessions.settings import MethodOptions
from suites import EntryPoint, Task, baseline_source, load_suite, load_task
from suites.task import RecordedScript
from tests.support.programs import python

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
    """Return the task's baseline with neutral entry point names."""
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


def test_corpus_excludes_the_task_under_test(starter: tuple[Task, ...]) -> None:
    for task in starter:
        corpus = build_corpus(starter, [task])
        assert {document.task for document in corpus.documents} == {
            other_task.id for other_task in starter
        } - {task.id}
        example = corpus.by_instruction(task)
        assert not overlaps(kernel_forms(example.source), kernel_forms(baseline_source(task)))


@pytest.mark.parametrize("name", ["softmax", "matmul_w8a8"])
def test_search_passes_over_planted_copies(name: str, tmp_path: Path) -> None:
    task = load_task(name)
    planted = {}
    for change in PLANTS:
        file = tmp_path / "deep" / f"{change.__name__}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(planted.setdefault(file.name, change(solution(task))))
    assert len(set(planted.values())) >= len(PLANTS) - 1, "a planted copy without a change tests nothing"
    (tmp_path / "double.py").write_text(KERNEL)
    (tmp_path / "planted.json").write_text(
        json.dumps([{"code": code} for code in (*planted.values(), KERNEL)])
    )
    for further in (tmp_path, tmp_path / "planted.json"):
        example = build_corpus([], [task], further).by_code(solution(task))
        assert example.source == KERNEL
        elsewhere = build_corpus([], [load_task("vector_add")], further).by_code(solution(task))
        assert elsewhere.source in planted.values(), (
            "a kernel without overlap with a task under test is shown"
        )


def test_search_ends_after_a_bounded_number_of_comparisons(tmp_path: Path) -> None:
    task = load_task("vector_add")
    file = tmp_path / "train.json"
    for copies, found in ((MOST_COMPARED - 1, KERNEL), (MOST_COMPARED, None)):
        rows = [*({"code": solution(task) + f"# {number}\n"} for number in range(copies)), {"code": KERNEL}]
        file.write_text(json.dumps(rows))
        example = build_corpus([], [task], file).by_code(solution(task))
        assert (example and example.source) == found


def test_json_corpus_in_each_format_of_tritonbench(tmp_path: Path) -> None:
    file = tmp_path / "train.json"
    halving = KERNEL.replace("double", "halve").replace("Doubles", "Halves").replace("* 2", "/ 2")
    crawled = {"code": KERNEL, "description_1": "Scales a vector by two", "uuid": 7}
    made = {"instruction": "Divides a vector", "input": "", "output": halving}
    file.write_text(json.dumps([crawled, made, {"file": "a.py"}]))
    softmax = load_task("softmax")
    corpus = build_corpus([], [softmax], file)
    assert [document.title for document in corpus.documents] == [
        "Doubles every element",
        "Halves every element",
    ]
    assert corpus.skipped == ("train.json#3 is not an example: it has no function with @triton.jit",)
    for instruction, source in (("scales by two", KERNEL), ("divides", halving)):
        task = msgspec.structs.replace(softmax, title="", category="", instruction=instruction)
        example = corpus.by_instruction(task)
        assert example.source == source


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"code": 1}]', "\xff"])
def test_missing_folder_or_file_that_is_no_json_array_is_a_usage_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"--corpus .*missing cannot be read \(No such file"):
        build_corpus([], [load_task("softmax")], tmp_path / "missing")
    file = tmp_path / "corpus.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageProblem, match=r"--corpus .*corpus.json cannot be read .*; name a folder"):
        build_corpus([], [load_task("softmax")], file)


def test_copy_and_task_of_the_same_name_in_another_suite_are_skipped() -> None:
    softmax = load_task("softmax")
    elsewhere = msgspec.structs.replace(load_task("flip"), suite="mine", name="softmax")
    copy = msgspec.structs.replace(softmax, suite="mine", name="normalise_rows", entry_points=())
    assert build_corpus([elsewhere, copy], [softmax]).documents == ()
    assert len(build_corpus([elsewhere, copy], [load_task("matmul")]).documents) == 2


def test_files_that_fit_no_prompt_are_skipped_with_a_remark(tmp_path: Path) -> None:
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "long.py").write_text(KERNEL + "#" * MOST_BYTES)
    (tmp_path / "plain.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "rows.py").write_text(KERNEL.replace("def double(", "def softmax("))
    (tmp_path / "softmax.py").write_text(KERNEL)
    (tmp_path / "torn.py").write_text("def f(:\n")
    (tmp_path / "notes.txt").write_text("no Python")
    (tmp_path / "twice.py").write_text(KERNEL)
    corpus = build_corpus([], [load_task("softmax")], tmp_path)
    assert [(document.task, document.title) for document in corpus.documents] == [
        ("twice.py", "Doubles every element")
    ]
    assert [re.split(" is not an example: | is left out: ", words) for words in corpus.skipped] == [
        ["bytes.py", "it is not UTF-8 text"],
        ["long.py", f"it has {len(KERNEL) + MOST_BYTES} bytes, more than the {MOST_BYTES} that fit a prompt"],
        ["plain.py", "it has no function with @triton.jit"],
        ["rows.py", "it defines softmax, which a task under test asks for"],
        ["softmax.py", "it has the name of a task under test, softmax"],
        ["torn.py", "Python cannot parse it"],
    ]
    assert corpus.remarks() == corpus.skipped
    for number in range(5):
        (tmp_path / f"plain{number}.py").write_text("x = 1\n")
    remarks = build_corpus([], [load_task("softmax")], tmp_path).remarks()
    assert (len(remarks), remarks[-1]) == (9, "3 more kernels of the corpus were skipped")


def test_corpus_has_no_example_if_every_task_is_under_test(starter: tuple[Task, ...]) -> None:
    corpus = build_corpus(starter, starter)
    assert corpus.by_instruction(starter[0]) is None
    assert corpus.by_code(baseline_source(starter[0])) is None


@pytest.mark.parametrize(
    ("name", "category", "multiplies", "expected"),
    [
        ("erf", "Math", False, "Sum of two vectors"),
        ("scatter", "Index", False, "Rows reversed"),
        ("attention", "Fusion", True, "Matrix product in half precision"),
    ],
)
def test_example_has_the_topic_of_the_task_whatever_words_its_instruction_shares(
    name: str, category: str, *, multiplies: bool, expected: str, starter: tuple[Task, ...]
) -> None:
    script = RecordedScript("wavedeck_call(call, x=None)", multiplies=multiplies)
    wordy = load_task("matmul_w8a8").instruction
    task = msgspec.structs.replace(
        load_task("flip" if name != "scatter" else "softmax"), name=name, suite="own", category=category,
        instruction=wordy, script=script, entry_points=(EntryPoint(name, f"{name}(x)"),),
    )  # fmt: skip
    example = Corpus(build_corpus(starter, []).documents).by_instruction(task)
    assert example is not None
    assert example.task == expected


def test_pytorch_reference_is_no_example(tmp_path: Path) -> None:
    folder = tmp_path / "double"
    shutil.copytree(load_task("vector_add").folder, folder)
    (folder / "baseline.py").write_text("def vector_add(x, y):\n    return x + y\n")
    task = msgspec.structs.replace(load_task("vector_add"), name="double", suite="own", folder=folder)
    assert not build_corpus([task], [load_task("softmax")]).documents


def test_search_by_code_finds_the_most_similar_kernel(starter: tuple[Task, ...]) -> None:
    corpus = build_corpus(starter, [load_task("vector_add")])
    for name in ("softmax", "matmul"):
        example = corpus.by_code(re.sub(r"\bx\b", "inputs", baseline_source(load_task(name))))
        assert example.task == load_task(name).title


def test_starter_kernels_are_not_copies_of_each_other(starter: tuple[Task, ...]) -> None:
    forms = [kernel_forms(baseline_source(task)) for task in starter]
    assert all(forms)
    for index, form in enumerate(forms):
        for later_form in forms[index + 1 :]:
            assert not overlaps(form, later_form)


def test_ranking_does_not_import_jax_which_would_allocate_gpu_memory(tmp_path: Path) -> None:
    fake = tmp_path / "jax"
    fake.mkdir()
    (fake / "__init__.py").write_text(
        "import pathlib; (pathlib.Path(__file__).parent / 'imported').touch()\n"
    )
    (fake / "lax.py").write_text("def top_k(scores, count):\n    return scores, scores\n")
    code = (
        "import sys\nfrom engine.corpus.retrieval import Index\n"
        "scores = Index(lambda: [('load', 'dot'), ('exp',)]).scores(['dot'])\n"
        "assert 'jax' not in sys.modules, 'scipy fails with an entry without a module'\nprint(scores)"
    )
    paths = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    first, second = json.loads(python(code, PYTHONPATH=paths))
    assert first > 0 == second
    assert not (fake / "imported").exists()


async def test_event_loop_builds_no_index() -> None:
    threads = []

    class Watched(Corpus):
        """Corpus that notes which thread builds its indices."""

        def prepare(self) -> None:
            threads.append(threading.current_thread())
            super().prepare()

    context = cast("Context", SimpleNamespace(options=MethodOptions(), corpus=Watched(())))
    assert await examples_of(context) is context.corpus
    assert threads
    assert threading.main_thread() not in threads
