"""Devices that the kernel drivers show, read from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import UnknownDevice, discover_devices
from harness import devices as module
from harness.environment import worker_environment


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one CPU node and one MI300X, as the amdgpu driver shows them."""
    for number, text in enumerate(
        ("simd_count 0\n", "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\n")
    ):
        folder = tmp_path / "kfd" / str(number)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(text)
    monkeypatch.setattr(module, "_KFD_NODES", tmp_path / "kfd")
    monkeypatch.setattr(module, "_NVIDIA_GPUS", tmp_path / "none")
    return tmp_path


def test_a_gpu_of_the_driver_is_listed_with_its_target(node: Path) -> None:
    found = discover_devices()
    assert [(one.name, one.kind, one.target) for one in found] == [
        ("cpu", "cpu", None),
        ("0", "hip", "gfx942"),
    ]
    assert "304 compute units" in found[1].description


def test_a_gpu_cannot_judge_yet_and_says_so(node: Path) -> None:
    with pytest.raises(UnknownDevice, match="cannot judge in this version; use cpu"):
        module.choose_devices(("0",))


def test_names_are_taken_once_and_none_is_an_error() -> None:
    assert [one.name for one in module.choose_devices(("cpu", "cpu"))] == ["cpu"]
    with pytest.raises(UnknownDevice, match="use cpu"):
        module.choose_devices(())


def test_no_key_and_no_result_changing_switch_reaches_a_worker() -> None:
    source = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "k",
        "AMD_SERIALIZE_KERNEL": "3",
        "TRITON_INTERPRET": "1",
        "ROCM_PATH": "/r",
    }
    found = worker_environment(interpret=False, source=source)
    assert found["PATH"] == "/bin"
    assert found["ROCM_PATH"] == "/r"
    assert not {"OPENAI_API_KEY", "AMD_SERIALIZE_KERNEL", "TRITON_INTERPRET"} & set(found)
    assert worker_environment(interpret=True, source={})["TRITON_INTERPRET"] == "1"
