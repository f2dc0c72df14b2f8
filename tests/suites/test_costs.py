"""Cost models: results against hand-computed figures, and errors of a faulty `cost.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites import BadTask, Cost, item_bytes, load_task, task_cost
from suites.costs import constraint_of
from tests.suites.folders import write_task


@pytest.mark.parametrize(
    ("task", "sizes", "dtype", "expected"),
    [
        ("vector_add", {"n": 10}, "float32", Cost(10, 120)),
        ("vector_add", {"n": 10}, "float16", Cost(10, 60)),
        ("softmax", {"rows": 2, "columns": 3}, "float32", Cost(30, 48)),
        ("flip", {"rows": 2, "columns": 3}, "int32", Cost(0, 48)),
        ("matmul", {"m": 2, "n": 3, "k": 5}, "float16", Cost(60, (10 + 15 + 6) * 2, "float16")),
        (
            "matmul",
            {"m": 4096, "n": 4096, "k": 4096},
            "float16",
            Cost(137_438_953_472, 100_663_296, "float16"),
        ),
        ("layer_norm", {"rows": 2, "columns": 3}, "float16", Cost(42, (6 + 6 + 3 + 3) * 2)),
        ("rms_norm_residual", {"rows": 2, "columns": 3}, "float32", Cost(30, (6 * 4 + 3) * 4)),
        ("cross_entropy", {"rows": 2, "classes": 3}, "float16", Cost(24, 6 * 2 + 2 * 8 + 2 * 4)),
        ("matmul_w8a8", {"m": 2, "n": 3, "k": 5}, "float16", Cost(60, 10 * 2 + 15 + 3 * 4 + 6 * 2, "int8")),
    ],
)
def test_cost_matches_hand_computed_figures(
    task: str, sizes: dict[str, int], dtype: str, expected: Cost
) -> None:
    assert task_cost(load_task(task), sizes, dtype) == expected


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def cost(sizes, dtype):\n    return sizes['rows']\n", "KeyError: 'rows'"),
        ("raise RuntimeError('no')\n", "RuntimeError: no"),
        ("def cost(sizes, dtype\n", "SyntaxError"),
        ("x = 1\n", "has no attribute 'cost'"),
        ("def cost(sizes, dtype):\n    return (1, 2, None)\n", "returned tuple, not suites.Cost"),
        (
            "from suites import Cost\ndef cost(sizes, dtype):\n    return Cost(1.5, 2)\n",
            "is 1.5; it must be a whole number",
        ),
        (
            "from suites import Cost\ndef cost(sizes, dtype):\n    return Cost(1, -2)\n",
            "is -2; it must be a whole number",
        ),
        (
            "from suites import Cost\ndef cost(sizes, dtype):\n    return Cost(1, 2, 'half')\n",
            "'half' is no dtype",
        ),
    ],
)
def test_faulty_cost_model_is_a_one_line_error_with_the_file(
    tmp_path: Path, source: str, complaint: str
) -> None:
    task = write_task(tmp_path, cost=source)
    with pytest.raises(BadTask) as caught:
        task_cost(task, {"n": 4}, "float32")
    message = str(caught.value)
    assert complaint in message
    assert str(task.folder / "cost.py") in message
    assert "\n" not in message


def test_cost_model_leaves_no_files_in_the_task_folder(tmp_path: Path) -> None:
    task = write_task(tmp_path)
    before = sorted(task.folder.rglob("*"))
    assert task_cost(task, {"n": 4}, "float32") == Cost(4, 32)
    assert sorted(task.folder.rglob("*")) == before


def test_unknown_dtype_has_no_size() -> None:
    assert item_bytes("bfloat16") == 2
    with pytest.raises(ValueError, match="'half' is no dtype"):
        item_bytes("half")


def test_constraint_is_asked_for_each_open_case(tmp_path: Path) -> None:
    source = "def constraint(config, sizes):\n    return sizes['n'] % config['BLOCK'] == 0\n"
    task = write_task(tmp_path, cost=source)
    size = task.open_cases[0].gpu["n"]
    is_allowed = constraint_of(task)
    assert is_allowed is not None
    assert is_allowed({"BLOCK": size})
    assert not is_allowed({"BLOCK": size + 1})
    with pytest.raises(BadTask, match="KeyError: 'BLOCK'"):
        is_allowed({})
    assert constraint_of(load_task("vector_add")) is None
