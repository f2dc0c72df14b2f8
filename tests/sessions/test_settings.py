"""Run settings: one struct; the files and lines of sessions that were recorded before it read and are written as before."""

from __future__ import annotations

import msgspec

from engine.plan.job import plan_of, session_started
from engine.plan.plan import SESSION_PLAN
from sessions.events import SessionStarted
from sessions.journal.codec import BadLine, decode, encode
from sessions.listing.description import DESCRIPTION
from sessions.settings import MethodOptions, RunSettings, StopRules

SETTINGS = RunSettings(
    method="geak", model="anthropic:m", tasks=("starter/softmax",), instances=2, iterations=3, seed=1,
    devices=("0",), targets=("gfx942",), review="manual", budget_tokens=9, budget_attempts=8,
    budget_device_s=7.0, budget_wall_s=6.0, first_chain=3, series="ablation-3f2a91/4", title="two",
    options=MethodOptions(without=("knowledge",), tune=True, workers=2),
    stop=StopRules(speedup=2.0, without_gain=4), allocate="best", against="mine.py", against_source="x = 1",
    spread=True, python="/opt/venv/bin/python", cluster="10.0.0.1:6379",
)  # fmt: skip
FIELDS = b'"method":"geak","model":"anthropic:m","tasks":["starter/softmax"],"instances":2,"iterations":3,"seed":1,"devices":["0"],"targets":["gfx942"],"review":"manual","budget_usd":null,"budget_tokens":9,"budget_attempts":8,"budget_device_s":7.0,"budget_wall_s":6.0,"first_chain":3,"series":"ablation-3f2a91/4","title":"two","options":{"without":["knowledge"],"show_reference":false,"tune":true,"by":"all","start":"","workers":2,"descendants":8,"profile":"chat","corpus":"","predictions":"","rejudges":"","agent":"","agent_command":""},"stop":{"speedup":2.0,"without_gain":4,"at_roof":false},"allocate":"best","against":"mine.py","against_source":"x = 1","spread":true,"python":"/opt/venv/bin/python","cluster":"10.0.0.1:6379"'
NEWER = b',"cells":0,"label":"","model_label":"","sampling":{},"references_shown":[]'
VERSIONS = b'"versions":{"triton":"3.7.1"},"templates":{"first.j2":"00"}'
NAME = b'"session":"20260101-000000-geak-0000"'
LINE = (
    b'{"type":"session_started","seq":1,"wall":5.5,"mono":0.25,"schema":1,'
    + NAME
    + b","
    + FIELDS
    + b","
    + VERSIONS
    + b"}"
)
STARTED = SessionStarted(
    seq=1, wall=5.5, mono=0.25, session="20260101-000000-geak-0000", settings=SETTINGS,
    versions={"triton": "3.7.1"}, templates={"first.j2": "00"},
)  # fmt: skip


def test_first_line_of_a_journal_reads_and_is_written_as_before() -> None:
    assert decode(LINE) == STARTED
    assert encode(STARTED) == LINE.replace(FIELDS, FIELDS + NEWER)


def test_first_line_of_the_first_version_reads_with_defaults() -> None:
    old = b'{"type":"session_started","session":"s","method":"geak","model":"m","tasks":[],"instances":1,"iterations":1,"seed":1,"devices":["cpu"],"targets":[],"review":"auto","profile_best":true}'
    event = decode(old)
    assert (event.settings.method, event.settings.options) == ("geak", MethodOptions())
    assert isinstance(decode(old.replace(b'"method":"geak",', b"")), BadLine)


def test_session_json_of_an_older_session_reads() -> None:
    description = DESCRIPTION.decode(
        b'{"schema":1,' + NAME + b',"started":5.5,' + FIELDS + b"," + VERSIONS + b"}"
    )
    assert description == STARTED.describe()
    assert DESCRIPTION.decode(msgspec.json.encode(description)) == description


def test_plan_json_of_an_older_session_reads() -> None:
    plan = SESSION_PLAN.decode(b"{" + NAME + b"," + FIELDS + b',"prices":{},"limits":{},"providers":{}}')
    assert RunSettings(**plan.settings()) == SETTINGS
    assert SESSION_PLAN.decode(msgspec.json.encode(plan)) == plan


def test_plan_of_a_fetched_session_has_its_settings() -> None:
    assert session_started(plan_of(STARTED.describe())).settings == SETTINGS
