"""Registry of suites: search by name, user suites, the check of a suite, and licences."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites import (
    BadSuite,
    UnknownTask,
    add_suite,
    check_suite,
    find_name,
    find_task,
    load_suite,
    load_task,
    suite_names,
)
from suites.registry import suite_licences
from tests.suites.folders import TASK, write_documented_task, write_folder
from tests.test_imports import loaded_by


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "home" / "suites.toml"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("sofmax", "softmax"),
        ("starter/matmull", "starter/matmul"),
        ("strter/flip", "starter/flip"),
        ("mine/doubel", "mine/double"),
    ],
)
def test_unknown_task_error_names_the_nearest_task(
    tmp_path: Path, registry: Path, name: str, near: str
) -> None:
    add_suite("mine", write_folder(tmp_path / "mine").parent, registry)
    with pytest.raises(UnknownTask) as caught:
        load_task(name, registry=registry)
    assert str(caught.value) == (
        f"no task is called '{name}' (did you mean '{near}'?); `wavedeck suites list` shows them"
    )


@pytest.mark.parametrize(
    "name", ["", "/", "starter/", "../starter/softmax", "starter/../starter/softmax", "starter/softmax/"]
)
def test_invalid_task_name_is_unknown(name: str) -> None:
    with pytest.raises(UnknownTask):
        load_task(name)


def test_added_suite_is_found_by_its_name(tmp_path: Path, registry: Path) -> None:
    folder = write_folder(tmp_path / "my suite").parent
    add_suite("mine", folder, registry)
    assert suite_names(registry=registry) == ("starter", "wavedeck-bench", "mine")
    task = load_task("mine/double", registry=registry)
    assert (task.id, task.short_id, task.folder) == ("mine/double", "mine/double", folder / "double")
    assert load_suite("mine", registry=registry) == (task,)
    assert suite_names() == ("starter", "wavedeck-bench")


def test_task_is_found_by_its_folder_and_a_session_needs_its_suite(
    tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "kernels")
    monkeypatch.chdir(folder.parent)
    assert find_task("double", registry=registry).id == "kernels/double"
    assert find_task("softmax", registry=registry).id == "starter/softmax"
    with pytest.raises(BadSuite, match=f"is in no suite.*: wavedeck suites add NAME {folder.parent}"):
        find_name(str(folder), registry=registry)
    add_suite("mine", folder.parent, registry)
    assert find_task("double", registry=registry) == load_task("mine/double", registry=registry)
    assert find_name("double", registry=registry) == "mine/double"
    assert find_name("softmax", registry=registry) == "softmax"


def test_second_add_changes_nothing_and_a_different_folder_is_refused(tmp_path: Path, registry: Path) -> None:
    first = write_folder(tmp_path / "first").parent
    second = write_folder(tmp_path / "second").parent
    add_suite("mine", first, registry)
    add_suite("other", second, registry)
    before = registry.read_bytes()
    add_suite("mine", first, registry)
    with pytest.raises(BadSuite, match="suite 'mine' is already"):
        add_suite("mine", second, registry)
    assert registry.read_bytes() == before
    assert [path.name for path in registry.parent.iterdir()] == ["suites.toml"]


def test_a_folder_that_moved_can_be_added_again(tmp_path: Path, registry: Path) -> None:
    folder = write_folder(tmp_path / "first").parent
    add_suite("mine", folder, registry)
    moved = folder.rename(tmp_path / "second")
    add_suite("mine", moved, registry)
    assert load_task("mine/double", registry=registry).folder == moved / "double"


@pytest.mark.parametrize(
    ("folder", "problem"), [("gone", "is no folder"), ("", "holds no task"), ("bad\udcff", "not UTF-8")]
)
def test_folder_that_is_no_suite_is_refused_without_files(
    tmp_path: Path, registry: Path, folder: str, problem: str
) -> None:
    if "bad" in folder:
        write_folder(tmp_path / folder)
    with pytest.raises(BadSuite, match=problem):
        add_suite("mine", tmp_path / folder, registry)
    assert not registry.exists()


@pytest.mark.parametrize("name", ["starter", "Mine", "a/b", "", "a b", "-a", "a..b"])
def test_suite_name_must_fit_refs_and_paths(tmp_path: Path, registry: Path, name: str) -> None:
    with pytest.raises(BadSuite, match=r"built in|is no name"):
        add_suite(name, write_folder(tmp_path / "mine").parent, registry)
    assert not registry.exists()


def test_suite_with_a_missing_folder_names_the_fix(tmp_path: Path, registry: Path) -> None:
    folder = write_folder(tmp_path / "mine")
    add_suite("mine", folder.parent, registry)
    folder.parent.rename(tmp_path / "moved")
    for name in ("mine/double", "mine/other"):
        with pytest.raises(
            BadSuite, match="is gone; restore it, or remove the suite with: wavedeck suites remove mine"
        ):
            load_task(name, registry=registry)
    assert load_task("softmax", registry=registry).name == "softmax"


@pytest.mark.parametrize(
    "text",
    [
        "[suites\n",
        "[suites]\nmine = 1\n",
        "[suite]\n",
        "[suites]\nstarter = '/x'\n",
        "[suites]\n'a b' = '/x'\n",
    ],
)
def test_broken_registry_is_a_one_line_error(registry: Path, text: str) -> None:
    registry.parent.mkdir(parents=True)
    registry.write_text(text)
    with pytest.raises(BadSuite) as caught:
        suite_names(registry=registry)
    assert str(caught.value).startswith(str(registry))
    assert "\n" not in str(caught.value)


@given(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=40))
def test_any_folder_name_round_trips_through_the_registry(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    parent = tmp_path_factory.mktemp("any")
    if name in {".", ".."} or len(name.encode()) > 200:
        return
    folder = write_folder(parent / name).parent
    add_suite("mine", folder, parent / "suites.toml")
    assert load_task("mine/double", registry=parent / "suites.toml").folder == folder / "double"


def test_check_of_a_suite_finds_every_mistake(tmp_path: Path, registry: Path) -> None:
    suite = tmp_path / "mine"
    write_folder(suite)
    write_folder(
        suite,
        name="no_oracle",
        task=TASK.replace('"double"', '"no_oracle"', 1),
        problem="def make_inputs(sizes, dtype): ...\n",
    )
    write_folder(suite, name="bad_toml", task="schema =")
    write_folder(
        suite, name="bad_python", task=TASK.replace('"double"', '"bad_python"', 1), baseline="def double(x:\n"
    )
    write_folder(
        suite,
        name="other_name",
        task=TASK.replace('"double"', '"other_name"', 1),
        baseline="def double(x, y): ...\n",
    )
    write_folder(
        suite,
        name="no_bytes",
        task=TASK.replace('"double"', '"no_bytes"', 1),
        cost="from suites import Cost\ndef cost(sizes, dtype):\n    return Cost(1, 0)\n",
    )
    add_suite("mine", suite, registry)
    problems = {
        (problem.file.parent.name, problem.file.name, problem.key)
        for problem in check_suite("mine", registry=registry)
    }
    assert problems == {
        ("no_oracle", "problem.py", "make_inputs"),
        ("no_oracle", "problem.py", "oracle"),
        ("bad_toml", "task.toml", ""),
        ("bad_python", "baseline.py", ""),
        ("other_name", "baseline.py", "double"),
        ("no_bytes", "cost.py", "minimal_bytes"),
    }


def test_documented_example_has_no_problems(tmp_path: Path, registry: Path) -> None:
    task = write_documented_task(tmp_path / "mine")
    add_suite("mine", tmp_path / "mine", registry)
    assert check_suite("mine", registry=registry) == ()
    assert load_suite("mine", registry=registry) == (task,)


def test_suites_load_without_torch_or_triton() -> None:
    loaded = loaded_by(
        "import suites\n"
        "assert not suites.check_suite('starter')\n"
        "assert suites.baseline_source(suites.load_task('softmax'))"
    )
    assert "suites" in loaded
    assert not loaded & {"torch", "triton", "numpy", "textual", "git", "harness", "sessions", "engine", "tui"}


MIT = (
    "Permission is hereby granted, free of charge, to any person\nto deal in the Software without restriction"
)


def test_licence_is_read_from_the_folder_or_the_root_of_its_repository(tmp_path: Path) -> None:
    registry = tmp_path / "home" / "suites.toml"
    for name in ("mine", "theirs", "gpu-mode", "silent"):
        task = tmp_path / name / "tasks" / "softmax"
        task.mkdir(parents=True)
        (task / "task.toml").touch()
        add_suite(name, task.parent, registry)
    (tmp_path / "mine" / "tasks" / "LICENSE.txt").write_text(MIT)
    (tmp_path / "theirs" / ".git").mkdir()
    (tmp_path / "theirs" / "COPYING").write_text("Apache License\n  Version 2.0, January 2004")
    (tmp_path / "silent" / "LICENSE").write_text(MIT)
    (tmp_path / "gpu-mode" / "tasks" / "LICENSE").write_text(
        "June 9 Researcher Reciprocity License\nVersion 1.0"
    )
    licences = suite_licences(registry)
    assert licences == {
        "starter": "Apache-2.0",
        "wavedeck-bench": "Apache-2.0",
        "mine": "MIT",
        "theirs": "Apache-2.0",
        "gpu-mode": "LicenseRef-Researcher-Reciprocity",
    }
