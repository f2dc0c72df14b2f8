"""YAML of public benchmarks: settings are read as the benchmarks read them, and a damaged file says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.public.config import read_config

CONFIG = """\
task_type: "triton2triton"  # the family
source_file_path: [source/scale.py]  # one file
correctness_command:
  - python3 run.py '#1'  # quoted
prompt:
  instructions: >-
    Make `scale`
    faster.
"""


def test_comments_are_no_part_of_a_value(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    config = read_config(path)
    assert (config.problem, config.gives_reference) == ("", True)
    assert config.sources == ("source/scale.py",)
    assert config.correctness == ("python3 run.py '#1'",)
    assert config.instructions == "Make `scale` faster."


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "- a list", "", "\x00"], ids=["open", "list", "empty", "binary"]
)
def test_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"config\.yaml is no YAML map"):
        read_config(path)
