"""One model per role: parsing, prices, and a real engine whose keys must never appear in its files."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from engine.errors import UsageProblem
from engine.models import parse_models, recording_of
from engine.plan.plan import resolve
from engine.plan.prices import Price
from engine.plan.request import RunPlan
from sessions import Home
from sessions.events import CallFinished, CallRetried, CallStarted, Role, SessionFinished, SessionStarted
from sessions.recording import load_recording
from tests.support.command_line import run_script
from tests.support.engine.live_engines import info_of, journal, plan_for, right, started, until_left, wrong
from tests.support.engine.model_server import Answer, Seen, model_server, refuses, says
from tests.support.waiting import wait_until

BOTH = "generator=anthropic:x,reflector=openai:y"
KEYS = {"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2"}
SECRETS = (
    "WAVEDECK_MODEL_KEY",
    "WAVEDECK_MODEL_HEADERS",
    "ANTHROPIC_API_KEY",
    "GROQ_API_KEY",
    "GITHUB_TOKEN",
)
PLANTED = {name: f"planted-{number}-5ecret" for number, name in enumerate(SECRETS)}


def named(text: str, *roles: Role) -> dict[str, str]:
    return {role.value: str(spec) for role, spec in parse_models(text, roles or tuple(Role)).items()}


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("openai:y", {"generator": "openai:y", "reflector": "openai:y", "optimizer": "openai:y"}),
        (
            "anthropic:x, reflector = openai:y@http://h/v1/a=b",
            {"generator": "anthropic:x", "reflector": "openai:y@http://h/v1/a=b", "optimizer": "anthropic:x"},
        ),
        (f"{BOTH},azure:z", {"generator": "anthropic:x", "reflector": "openai:y", "optimizer": "azure:z"}),
        ("openai:a,b", {"generator": "openai:a,b", "reflector": "openai:a,b", "optimizer": "openai:a,b"}),
    ],
)
def test_each_role_has_its_model(text: str, models: dict[str, str]) -> None:
    assert named(text) == models


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOTH, "names no model for optimizer: add optimizer=MODEL, or a MODEL without a role for the rest"),
        ("reflektor=openai:y,openai:x", "did you mean reflector?"),
        ("judge=openai:y,openai:x", "there are generator, reflector, optimizer"),
        ("generator=openai:y,generator=openai:x", "two models for generator"),
        ("generator=openai:y,openai:x,openai:z", "two models for the rest"),
        ("generator=recorded:starter,openai:x", "a recording answers every role"),
        ("generator=,openai:x", "names no model"),
    ],
)
def test_wrong_role_is_an_error(text: str, message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        named(text)
    assert message in str(caught.value)


def test_role_that_the_method_does_not_use_is_refused() -> None:
    assert named(BOTH, Role.GENERATOR, Role.REFLECTOR) == {
        "generator": "anthropic:x",
        "reflector": "openai:y",
    }
    with pytest.raises(UsageProblem, match="no reflector is asked here, only generator"):
        named(BOTH, Role.GENERATOR)


def test_recording_is_played_only_as_the_single_model() -> None:
    assert recording_of("recorded:starter") == "starter"
    assert recording_of(BOTH) is None


def test_usd_budget_needs_a_price_for_every_model(tmp_path: Path) -> None:
    price = Price(input=1.0, output=2.0)
    run_plan = RunPlan(
        model=BOTH, method="reflexion", budget_usd=1.0, prices={"anthropic:x": price, "openai:other": price}
    )
    with pytest.raises(UsageProblem, match=r"needs a price for openai:y: configure \[prices\.\"openai:y\"\]"):
        resolve(run_plan, home=Home(tmp_path), environ=KEYS)


def test_session_plan_keeps_only_the_prices_of_its_models(tmp_path: Path) -> None:
    prices = {name: Price(input=1.0, output=2.0) for name in ("anthropic:x", "openai:y", "openai:other")}
    run_plan = RunPlan(model=BOTH, method="reflexion", budget_usd=1.0, prices=prices)
    plan = resolve(run_plan, home=Home(tmp_path), environ=KEYS)
    assert (plan.model, sorted(plan.prices)) == (BOTH, ["anthropic:x", "openai:y"])


def test_missing_key_of_any_model_is_an_error_before_the_start(tmp_path: Path) -> None:
    run_plan = RunPlan(model=BOTH, method="reflexion")
    with pytest.raises(UsageProblem, match="openai:y needs a key: set OPENAI_API_KEY"):
        resolve(run_plan, home=Home(tmp_path), environ={"ANTHROPIC_API_KEY": "k"})


@pytest.mark.soak
@pytest.mark.judge
def test_session_with_roles_is_priced_and_recorded_without_any_key(tmp_path: Path) -> None:
    home, go_on = Home(tmp_path / "home"), threading.Event()
    generated = iter([says(wrong()), says(right())])
    echoed: list[str] = []

    def generator(seen: Seen) -> Answer:
        if "temperature" in seen.body:
            return refuses(400, message="temperature is not supported by this model")
        go_on.wait(60)
        if not echoed:
            echoed.append(f"busy: {seen.headers}")
            return refuses(529, message=echoed[0])
        return next(generated)

    with (
        model_server(answer=generator) as generator_server,
        model_server(says("You subtract.", reasoning="x - y", input_tokens=1000)) as reflector_server,
    ):
        models = (
            f"openai:gen@{generator_server.openai_url}",
            f"anthropic:ref@{reflector_server.anthropic_url}",
        )
        prices = {models[0]: Price(input=1.0, output=2.0), models[1]: Price(input=100.0, output=200.0)}
        plan = plan_for(
            generator_server,
            method="reflexion",
            model=f"generator={models[0]},reflector={models[1]}",
            prices=prices,
            budget_usd=50.0,
        )
        headers = f"X-Gateway: {PLANTED['WAVEDECK_MODEL_HEADERS']}"
        with started(plan, home, **(PLANTED | {"WAVEDECK_MODEL_HEADERS": headers})) as session:
            engine = psutil.Process(info_of(home, session).pid)
            wait_until(
                lambda: len(generator_server.requests) >= 2 and engine.children(recursive=True),
                "a call and a judge",
            )
            for child in (engine, *engine.children(recursive=True)):
                for file in ("environ", "cmdline"):
                    assert b"5ecret" not in read_proc(child.pid, file)
            go_on.set()
            until_left(home, session)
    events = journal(home, session)
    assert isinstance(events[-1], SessionFinished)
    calls = [(event.role, event.model) for event in events if isinstance(event, CallStarted)]
    assert calls == [(Role.GENERATOR, models[0]), (Role.REFLECTOR, models[1]), (Role.GENERATOR, models[0])]
    finished = [event for event in events if isinstance(event, CallFinished)]
    assert [event.temperature for event in finished] == [None, 1.0, None]
    assert finished[0].cost_usd == pytest.approx((100 * 1.0 + 10 * 2.0) / 1e6)
    assert finished[1].cost_usd == pytest.approx((1000 * 100.0 + 10 * 200.0) / 1e6)
    [retried] = [event for event in events if isinstance(event, CallRetried)]
    assert retried.reason == "overloaded"
    assert all(PLANTED[name] in echoed[0] for name in ("WAVEDECK_MODEL_KEY", "WAVEDECK_MODEL_HEADERS"))
    assert retried.message.count("[key]") == 2

    shown = command(home, "sessions", "show", session)
    [line] = [line for line in shown.splitlines() if line.startswith("generator")]
    assert line.split()[:4] == ["generator", models[0], "test", "2"]
    assert line.endswith("the model's own")
    rows = json.loads(command(home, "sessions", "show", session, "--json"))["asked"]
    assert [(row["role"], row["model"], row["calls"], row["own_temperature"]) for row in rows] == [
        ("generator", models[0], 2, True),
        ("reflector", models[1], 1, False),
    ]

    [begun] = [event for event in events if isinstance(event, SessionStarted)]
    command(home, "record", session, "both")
    recording = load_recording(home.recordings / "both")
    assert recording.facts.model == begun.settings.model
    assert [reply.role for reply in recording.chains["starter/vector_add", 1]] == [role for role, _ in calls]
    assert b"5ecret" not in every_byte(home)


def read_proc(pid: int, file: str) -> bytes:
    """Return a /proc file of a process; empty if the process ended."""
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def command(home: Home, *arguments: str) -> str:
    """Run a command and return its standard output."""
    done = run_script(*arguments, environ=os.environ | {"WAVEDECK_HOME": str(home.root), "COLUMNS": "200"})
    assert done.code == 0, done.err
    return done.out


def every_byte(home: Home) -> bytes:
    """Return all bytes below a home, including the unpacked objects of git."""
    objects = subprocess.run(
        ["git", "-C", str(home.store), "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True,
        check=True,
    ).stdout
    assert b"You subtract." in objects
    return objects + b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
