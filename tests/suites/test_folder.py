"""Task folders: a valid folder gives a task; each mistake gives a one-line error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites import Allowance, Axis, BadTask, Distribution, Task, Tolerance, load_suite
from suites.folder import read_task
from suites.source.signature import parse_signature
from suites.tolerances import tolerance_of
from tests.suites.folders import TASK, write_folder

LINE = "float32 = { rtol = 1e-6, atol = 0.0 }"
QUANTIZATION = "[quantization]\ncosine_min = 0.9\nrelative_l1_max = 0.1\nrmse_max = 0.1"
INSTRUCTION = "Write `double(x)`."


def read(parent: Path, text: str) -> Task:
    return read_task(write_folder(parent, task=text), suite="mine")


def test_valid_folder_is_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    task = read_task(folder, suite="mine")
    assert (task.id, task.short_id, task.folder) == ("mine/double", "mine/double", folder.resolve())
    assert task.tolerances == {"float32": Tolerance(rtol=1e-6, atol=0.0)}
    assert [case.distribution for case in task.cases] == [Distribution.STANDARD, Distribution.OUTLIER]


def test_read_task_runs_no_python_of_the_folder(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path, problem="raise SystemExit", cost="raise SystemExit", baseline="raise SystemExit"
    )
    assert read_task(folder, suite="mine").name == "double"


@pytest.mark.parametrize(
    ("old", "new", "key", "complaint"),
    [
        ("schema = 1", "schema = 2", "schema", "reads 1"),
        ("schema = 1", "schema = 1\nsuite = 'x'", "suite", "must not be in the file"),
        ("schema = 1", "schema = = 1", "", "cannot be read"),
        ("difficulty = 1", 'difficulty = "1"', "difficulty", "Expected `int`, got `str`"),
        ("difficulty = 1", "difficulty = 6", "difficulty", "goes from 1"),
        ("difficulty = 1", "", "", "missing required field `difficulty`"),
        ("schema = 1", 'schema = 1\nstrict = ["out_of_bound"]', "strict", "(did you mean 'out_of_bounds'?)"),
        ("difficulty = 1", "dificulty = 1", "dificulty", "unknown key (did you mean 'difficulty'?)"),
        ("rtol = 1e-6", "rtoll = 1e-6", "tolerances[...].rtoll", "unknown key (did you mean 'rtol'?)"),
        ('name = "double"\ntitle', 'name = "Double"\ntitle', "name", "lower-case"),
        ('name = "double"\ntitle', 'name = "triple"\ntitle', "name", "the folder is called 'double'"),
        ('title = "Twice a vector"', 'title = " "', "title", "is empty"),
        ('category = "Math"', 'category = "Maths"', "category", "did you mean 'Math'?"),
        ('outlier_inputs = ["x"]', 'outlier_inputs = ["y"]', "outlier_inputs", "'y' is no parameter"),
        ('outlier_inputs = ["x"]', "", "outlier_inputs", "is empty, but a case has the distribution"),
        ('outlier_inputs = ["x"]', 'in_place = ["y"]\noutlier_inputs = ["x"]', "in_place", "'y' is no parameter"),
        ('signature = "double(x)"', 'signature = "double(x"', "entry_points[0].signature", "is no signature"),
        ('signature = "double(x)"', 'signature = "double(*x)"', "entry_points[0].signature", "plain parameters"),
        ('signature = "double(x)"', 'signature = "double()"', "entry_points[0].signature", "has no parameter"),
        ('signature = "double(x)"', 'signature = "twice(x)"', "entry_points[0].name", "is for 'twice'"),
        ('name = "out"', 'name = "out"\ndtype = "float23"', "outputs[0].dtype", "did you mean 'float32'?"),
        ('name = "out"', 'name = "out"\n[[outputs]]\nname = "out"', "outputs[1].name", "used twice"),
        ('name = "outlier"', 'name = "plain"', "cases[1].name", "used twice"),
        ('name = "plain"', 'name = "a b"', "cases[0].name", "is no name"),
        ('name = "plain"\ndtype = "float32"', 'name = "plain"\ndtype = "half"', "cases[0].dtype", "is no dtype"),
        ('name = "plain"\ndtype = "float32"', 'name = "plain"\ndtype = "float16"', "tolerances", "no entry for float16"),
        ('dtype = "float32"\ncpu = { n = 100 }', 'dtype = "float32"\ncpu = {}', "cases[0].cpu", "is empty"),
        ('dtype = "float32"\ncpu = { n = 100 }', 'dtype = "float32"\ncpu = { m = 1 }', "cases[0].gpu", "other cases have m"),
        ('dtype = "float32"\ncpu = { n = 100 }', 'dtype = "float32"\ncpu = { n = -1 }', "cases[0].cpu.n", "must not be negative"),
        ('dtype = "float32"\ncpu = { n = 100 }', 'dtype = "float32"\ncpu = { n = 1.5 }', "cases[0].cpu[...]", "Expected `int`"),
        ('dtype = "float32"\ncpu = { n = 100 }', 'dtype = "float32"', "cases[0]", "missing required field `cpu`"),
        ('distribution = "outlier"', 'distribution = "wild"', "cases[1].distribution", "wild"),
        ('name = "plain"', 'name = "plain"\nweight = 0.5', "cases", "have weights in part"),
        ('name = "plain"', 'name = "plain"\nweight = -1.0', "cases[0].weight", "is above 0"),
        ("atol = 0.0", "atol = -1.0", "tolerances.float32.atol", "must be from 0"),
        ("atol = 0.0", "atol = nan", "tolerances.float32.atol", "must be from 0"),
        (LINE, "float32 = { ulps = -1.0 }", "tolerances.float32.ulps", "0 or more"),
        (LINE, "float32 = { accumulation = inf, reduction = 'n' }", "tolerances.float32.accumulation", "0 or more"),
        (LINE, "float32 = { accumulation = 4.0 }", "tolerances.float32.reduction", "need each other"),
        (LINE, "float32 = { reduction = 'n' }", "tolerances.float32.reduction", "need each other"),
        (LINE, "float32 = { accumulation = 4.0, reduction = 'k' }", "tolerances.float32.reduction", "no size of the cases"),
        (LINE, "flaot32 = { ulps = 1.0 }", "tolerances.flaot32", "did you mean 'float32'"),
        (LINE, "float16 = { ulps = 1.0 }", "tolerances", "no entry for float32"),
        (LINE, f"{LINE}\n{QUANTIZATION}\nworst_max = nan", "quantization.worst_max", "must be from 0"),
        (LINE, f"{LINE}\n{QUANTIZATION}\nprobe = {{ rtol = 2.0 }}", "quantization.probe.rtol", "must be from 0"),
        ("[[entry", 'allows = ["strides"]\n[[entry', "allows[0]", "one of offset, unaligned"),
        ("[[entry", 'allows = ["non-contiguous"]\n[[entry', "allows", "does not say that such inputs"),
        ("[[entry", 'allows = ["unaligned"]\n[[entry', "allows", "does not say that such inputs"),
        ("[tolerances]", "[axes]\nm = {}\n[tolerances]", "axes.m", "is no axis of the cases"),
        ("[tolerances]", "[axes]\nn = { min = -1 }\n[tolerances]", "axes.n.min", "must not be negative"),
        ("[tolerances]", "[axes]\nn = { multiple_of = 0 }\n[tolerances]", "axes.n.multiple_of", "at least 1"),
        ("[tolerances]", "[axes]\nn = { multiple_of = 3 }\n[tolerances]", "axes.n", "does not hold for case plain, which has size 100"),
        ("[tolerances]", "[axes]\nn = { min = 101 }\n[tolerances]", "axes.n", "does not hold for case plain"),
        ("[tolerances]", "[axes]\nn = { minimum = 1 }\n[tolerances]", "axes[...].minimum", "unknown key"),
        ("[tolerances]", "[quantization]\ncosine_min = 2.0\nrelative_l1_max = 0.1\nrmse_max = 0.1\n[tolerances]", "quantization.cosine_min", "between -1 and 1"),
        ("[tolerances]", "[quantization]\ncosine_min = 0.9\nrelative_l1_max = 0.1\nrmse_max = nan\n[tolerances]", "quantization.rmse_max", "must be from 0"),
    ],
)  # fmt: skip
def test_mistake_is_one_line_with_file_key_and_problem(
    tmp_path: Path, old: str, new: str, key: str, complaint: str
) -> None:
    assert TASK.count(old) == 1 or old.startswith('dtype = "float32"'), old
    folder = write_folder(tmp_path, task=TASK.replace(old, new, 1))
    with pytest.raises(BadTask) as caught:
        read_task(folder, suite="mine")
    error = caught.value
    assert (error.file, error.key) == (folder / "task.toml", key)
    assert complaint in error.problem
    assert str(error).startswith(f"{folder / 'task.toml'}: ")
    assert "\n" not in str(error)


@pytest.mark.parametrize("file", ["task.toml", "problem.py", "cost.py", "baseline.py"])
def test_missing_file_is_named(tmp_path: Path, file: str) -> None:
    folder = write_folder(tmp_path)
    (folder / file).unlink()
    with pytest.raises(BadTask, match="is missing; a task folder has") as caught:
        read_task(folder, suite="mine")
    assert caught.value.file == folder / file


def test_task_without_cases_is_an_error(tmp_path: Path) -> None:
    text = TASK[: TASK.index("[[cases]]")].replace("schema = 1", "schema = 1\ncases = []")
    with pytest.raises(BadTask, match="at least one case"):
        read_task(write_folder(tmp_path, task=text), suite="mine")


def test_quantization_task_needs_no_tolerances(tmp_path: Path) -> None:
    text = TASK.replace(
        "[tolerances]\nfloat32 = { rtol = 1e-6, atol = 0.0 }",
        "[quantization]\ncosine_min = 0.9\nrelative_l1_max = 0.1\nrmse_max = 0.1",
    )
    task = read_task(write_folder(tmp_path, task=text), suite="mine")
    assert task.quantization.rmse_max == 0.1


def test_signature_gives_its_parameters_in_order() -> None:
    signature = parse_signature("layer_norm(x, weight, bias, eps=1e-5)")
    assert signature.name == "layer_norm"
    assert signature.parameters == ("x", "weight", "bias", "eps")
    assert signature.required == ("x", "weight", "bias")
    assert signature.defaults == {"eps": "1e-05"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "f(x",
        "f(x): ...\ndef g(y)",
        "f(x): pass; import os #(",
        "f(x, /)",
        "f(*x)",
        "f(**x)",
        "f(x=open)",
        "f(x, x)",
    ],
)
def test_invalid_signature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"signature|plain"):
        parse_signature(text)


@given(st.text("fgx_0,=()*/:[]'\" \n#.", max_size=60))
def test_any_text_is_a_signature_or_a_value_error(text: str) -> None:
    try:
        signature = parse_signature(text)
    except ValueError:
        return
    assert signature.name.isidentifier()


def test_tolerance_follows_the_output_dtype_or_its_own_entry(tmp_path: Path) -> None:
    halves = TASK.replace('dtype = "float32"', 'dtype = "float16"')
    wide = read(tmp_path / "a", halves.replace('name = "out"', 'name = "out"\ndtype = "float32"'))
    assert tolerance_of(wide, wide.outputs[0], wide.cases[0]) == Tolerance(rtol=1e-6)
    own = read(
        tmp_path / "b", TASK.replace('name = "out"', 'name = "out"\ntolerances.float32 = { ulps = 0.5 }')
    )
    assert tolerance_of(own, own.outputs[0], own.cases[0]) == Tolerance(ulps=0.5)
    whole = read(tmp_path / "c", TASK.replace('name = "out"', 'name = "out"\ndtype = "int32"'))
    assert tolerance_of(whole, whole.outputs[0], whole.cases[0]) == Tolerance()


def test_fp8_dtype_is_allowed_in_cases_and_tolerances(tmp_path: Path) -> None:
    task = read(tmp_path, TASK.replace("float32", "fp8_e4m3"))
    assert tolerance_of(task, task.outputs[0], task.cases[0]) == Tolerance(rtol=1e-6)


def test_default_allowance_is_offset_and_stated_allowances_are_read(tmp_path: Path) -> None:
    default = read_task(write_folder(tmp_path / "silent"), suite="mine")
    assert (default.allows, default.axes) == ((Allowance.OFFSET,), {})
    text = TASK.replace(INSTRUCTION, f"{INSTRUCTION} `x` may be non-contiguous and at any alignment.")
    text = text.replace(
        "[[entry",
        'allows = ["non-contiguous", "unaligned", "special-values", "degenerate-rows"]\n\n[[entry',
        1,
    )
    task = read_task(
        write_folder(tmp_path / "allowing", task=text + "\n[axes]\nn = { min = 4, multiple_of = 4 }\n"),
        suite="mine",
    )
    assert set(task.allows) == set(Allowance) - {Allowance.OFFSET}
    assert task.axes == {"n": Axis(min=4, multiple_of=4)}


def test_promise_of_the_instruction_and_exam_without_other_cases_are_errors(tmp_path: Path) -> None:
    promising = TASK.replace(INSTRUCTION, f"{INSTRUCTION} `n` is any positive number.")
    with pytest.raises(BadTask, match="promises"):
        read(tmp_path / "axis", promising + "[axes]\nn = { min = 0 }\n")
    with pytest.raises(BadTask, match="all for the exam"):
        read(tmp_path / "exam", TASK.replace("gpu = { n = 1000000 }", "gpu = { n = 1000000 }\nexam = true"))


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_starter_task_allows_only_what_its_instruction_permits(task: Task) -> None:
    """Every instruction promises contiguous inputs and positive sizes, so hidden cases must keep both promises."""
    assert "contiguous" in task.instruction
    assert "any positive numbers" in task.instruction or "any positive number:" in task.instruction
    assert not {Allowance.NON_CONTIGUOUS, Allowance.UNALIGNED} & set(task.allows)
    assert set(task.axes) == set(task.cases[0].cpu)
    assert {axis.min for axis in task.axes.values()} == {1}
