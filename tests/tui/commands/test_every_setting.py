"""Every setting of a run is known wherever a person may give or read it, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
import pytest

from engine.agent_programs.presets import PRESETS
from engine.plan.request import RunPlan
from engine.plan.settings import SETTINGS, RequestedSettings, accepted_words, setting_of, value_name
from engine.prompting.profiles import PROFILES
from harness.stages.timing.baselines import KINDS
from sessions.settings import MODULES, MethodOptions, RunSettings
from tests.support.programs import ROOT
from tui.actions import run_form, study_plan
from tui.commands.run.run import run_command
from tui.config import FIELDS, TABLES, Preferences, from_environment, variable_of

KEPT_AS = dict.fromkeys(("stop-at-speedup", "stop-without-gain", "past-roof"), "stop") | {"suite": "tasks"}
"""Settings that a session's description has under another name."""


@pytest.mark.parametrize("key", SETTINGS)
def test_setting_is_known_on_every_surface(key: str) -> None:
    field = SETTINGS[key]
    setting = setting_of(field)
    options = {option.name: option for option in run_command.params}
    assert options[field.name].help.startswith(setting.words)
    assert (
        options[field.name].is_flag == (accepted_words(field) == "true or false") == (not value_name(field))
    )
    assert FIELDS[key].name == field.name
    sources, remarks = from_environment({variable_of(key): "1"})
    assert ([source.values for source in sources], remarks) == ([{key: "1"}], ())
    assert (key in run_form.BY_KEY) == bool(setting.form)
    assert (key in study_plan.RUN) == setting.study
    names = {*RunSettings.__struct_fields__, *MethodOptions.__struct_fields__}
    assert KEPT_AS.get(key, field.name) in names


def test_documented_keys_are_the_keys_of_files() -> None:
    page = (ROOT / "docs" / "data.md").read_text().partition("## Configuration")[2]
    row = next(line for line in page.splitlines() if line.startswith("| `suite`"))
    keys = re.findall(r"`([a-z-]+)`", row)
    assert keys == [*SETTINGS]
    assert set(FIELDS) == {*SETTINGS, *Preferences.__struct_fields__, *TABLES}


@pytest.mark.parametrize(
    ("key", "names"),
    [("agent", PRESETS), ("prompt-style", PROFILES), ("without", MODULES), ("against", KINDS)],
)
def test_help_lists_every_value(key: str, names: Iterable[str]) -> None:
    listed = setting_of(SETTINGS[key]).values
    assert [name for name in names if name not in re.split(r", ?| or ", listed)] == []


def test_defaults_of_method_options_are_those_of_sessions() -> None:
    assert RunPlan().options == MethodOptions()
    own = {"predictions", "rejudges"}
    assert {*MethodOptions.__struct_fields__} - {*RequestedSettings.__struct_fields__} == own


def test_a_new_setting_renames_no_study_and_a_changed_one_does() -> None:
    class Later(RunPlan, frozen=True, kw_only=True):
        widened: bool = False

    plan, later = RunPlan(model="anthropic:m"), Later(model="anthropic:m")
    assert study_plan._digest([later], (), ()) == study_plan._digest([plan], (), ())
    changed = msgspec.structs.replace(later, widened=True)
    assert study_plan._digest([changed], (), ()) != study_plan._digest([plan], (), ())
