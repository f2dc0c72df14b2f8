"""Run settings: one struct, in the first line of a journal, in `session.json` and in a plan."""

from __future__ import annotations

import msgspec
import pytest

from engine.plan.job import plan_of, session_started
from engine.plan.plan import SESSION_PLAN
from sessions.events import SessionStarted
from sessions.journal.codec import BadLine, decode, encode
from sessions.settings import MethodOptions, RunSettings, StopRules

SETTINGS = RunSettings(
    method="geak", model="anthropic:m", tasks=("starter/softmax",), instances=2, iterations=3, seed=1,
    devices=("0",), targets=("gfx942",), review="manual", budget_tokens=9,
    budget_device_s=7.0, budget_wall_s=6.0, first_chain=3, series="ablation-3f2a91/4", title="two",
    options=MethodOptions(without=("knowledge",), tune=True, workers=2),
    stop=StopRules(speedup=2.0, without_gain=4), against="mine.py", against_source="x = 1",
    python="/opt/venv/bin/python", cluster="10.0.0.1:6379",
)  # fmt: skip
STARTED = SessionStarted(
    seq=1, wall=5.5, mono=0.25, session="20260101-000000-geak-0000", settings=SETTINGS,
    versions={"triton": "3.7.1"}, templates={"first.j2": "00"},
)  # fmt: skip


def test_settings_are_fields_of_a_journals_first_line_and_of_its_files() -> None:
    line = msgspec.json.decode(encode(STARTED))
    assert "settings" not in line
    assert (line["session"], line["model"], line["stop"]["speedup"]) == (STARTED.session, "anthropic:m", 2.0)
    assert decode(encode(STARTED)) == STARTED
    plan = plan_of(STARTED.describe())
    assert SESSION_PLAN.decode(msgspec.json.encode(plan)) == plan
    assert session_started(plan).settings == SETTINGS


@pytest.mark.parametrize("without", ["stop", "budget_usd", "options"])
def test_first_line_of_another_version_reads_with_defaults(without: str) -> None:
    line = msgspec.json.decode(encode(STARTED))
    event = decode(msgspec.json.encode({name: line[name] for name in line if name != without} | {"new": 1}))
    defaults = {"stop": StopRules(), "budget_usd": None, "options": MethodOptions()}
    assert event.settings == msgspec.structs.replace(SETTINGS, **{without: defaults[without]})
    assert isinstance(decode(msgspec.json.encode(line | {"method": None})), BadLine)
