"""Protects tasks of public benchmarks in the home: loaded by name without torch, and out of date if the clone changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from suites import load_suite, load_task
from suites.public.recorded import NeedsRecording, find_recorded, recorded_folder, text_digest
from suites.public.task import PublicTask, SuiteKind, TestForm
from suites.task import RecordedScript
from tests.support.tasks.scripts import SCALE, TEST, public_task

REGISTRY = """[suites]

[clones.mine]
kind = "tritonbench-revised"
folder = "{folder}"
"""


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    file = tmp_path / "home" / "suites.toml"
    file.parent.mkdir()
    file.write_text(REGISTRY.format(folder=tmp_path))
    return file


def write_recorded(public: PublicTask, registry: Path) -> None:
    """A starter task's folder with the script of a public task."""
    starter = load_task("vector_add")
    folder = recorded_folder(registry, public.suite) / public.name
    shutil.copytree(starter.folder, folder)
    file = folder / "task.toml"
    text = file.read_text().replace('name = "vector_add"', f'name = "{public.name}"', 1)
    script = msgspec.to_builtins(RecordedScript(signature="wavedeck_call(call)", digest=text_digest(public)))
    file.write_text(f'{text}\n[script]\nsignature = "{script["signature"]}"\ndigest = "{script["digest"]}"\n')


def test_a_task_that_was_not_recorded_says_how_to_record_it(registry: Path) -> None:
    with pytest.raises(NeedsRecording, match="wavedeck eval FILE --task mine/scale"):
        load_task("mine/scale", registry=registry)
    with pytest.raises(NeedsRecording, match="wavedeck suites references mine"):
        load_suite("mine", registry=registry)


def test_a_recorded_task_is_found_until_its_texts_change(registry: Path, tmp_path: Path) -> None:
    public = public_task(SCALE, TEST, tmp_path)
    assert public.kind is SuiteKind.TRITONBENCH_REVISED
    write_recorded(public, registry)
    assert load_task("mine/scale", registry=registry).id == "mine/scale"
    assert [task.name for task in load_suite("mine", registry=registry)] == ["scale"]
    recorded = find_recorded(public, registry, for_gpu=False)
    assert recorded.script is not None
    assert find_recorded(public_task(SCALE + "\n", TEST, tmp_path), registry, for_gpu=False) is None


def test_a_recording_stays_valid_if_the_clone_moves(tmp_path: Path) -> None:
    clones = [public_task(SCALE, TEST, tmp_path / name) for name in ("before", "after")]
    assert text_digest(clones[0]) == text_digest(clones[1])


def test_a_module_recorded_without_a_gpu_is_recorded_again_for_its_call_for_timing(
    registry: Path, tmp_path: Path
) -> None:
    public = msgspec.structs.replace(public_task(SCALE, TEST, tmp_path), test_form=TestForm.MODEL)
    write_recorded(public, registry)
    assert find_recorded(public, registry, for_gpu=False) is not None
    assert find_recorded(public, registry, for_gpu=True) is None
