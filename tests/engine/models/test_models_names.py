"""Model names: parsing, errors for wrong names and keys, without loading an SDK."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.errors import UsageProblem
from engine.models import ModelSpec, check_models, open_client, parse_model, parse_models
from tests.test_imports import loaded_by

NOWHERE = Path("nowhere")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("anthropic:claude-x", ModelSpec("anthropic", "claude-x")),
        ("openai:gpt@2026", ModelSpec("openai", "gpt@2026")),
        (
            "openai:org/model:8b@http://host:8000/v1",
            ModelSpec("openai", "org/model:8b", "http://host:8000/v1"),
        ),
        ("openai:a@b@https://host/v1", ModelSpec("openai", "a@b", "https://host/v1")),
        ("recorded:starter", ModelSpec("recorded", "starter")),
    ],
)
def test_model_name_round_trips_through_its_parts(text: str, spec: ModelSpec) -> None:
    assert parse_model(text) == spec
    assert str(spec) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claude", "write anthropic:NAME"),
        ("anthropic:", "write anthropic:NAME"),
        ("antropic:claude", "did you mean anthropic:claude?"),
        ("gemini:pro@http://host/v1", "or openai:pro@http://host/v1"),
        ("azure:x@http://host", "have their own address"),
        ("mistral:x", "unknown model provider 'mistral'"),
        ("openai:@http://host/v1", "before the @"),
        ("openai:x@ftp://host/v1", "not the address of a model server"),
        ("openai:x@http://", "not the address of a model server"),
        ("openai:x@http://[::1/v1", "not the address of a model server"),
        ("openai:x@http://host:999999/v1", "not the address of a model server"),
        ("openai:x@http://a host/v1", "not the address of a model server"),
        ("openai:x@http://host:port/v1", "not the address of a model server"),
        ("recorded:../../etc", "not the name of a recording"),
        ("recorded:x@http://host", "not the name of a recording"),
    ],
)
def test_wrong_model_name_error_says_what_is_right(text: str, message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_model(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "openai:x@http://user:SECRET@host/v1",
        "openai:x@http://host/v1?api_key=SECRET",
        "openai:x@http://host/v1#SECRET",
        "openai:x@http://host/v1?a=1,SECRET=2",
        "openai:x@host/v1?api_key=SECRET",
        "openai:x@ftp://host/v1?api_key=SECRET",
        "openai:@http://host/v1?api_key=SECRET",
        "opnai:x@http://user:SECRET@host/v1",
        "gemini:x@http://host/v1#SECRET",
        "recorded:x@http://host?SECRET",
    ],
)
@pytest.mark.parametrize("form", ["{}", "generator={},recorded:x", "writer=openai:x,generator={}"])
def test_key_in_an_address_is_refused_and_not_shown(text: str, form: str) -> None:
    for parse in (parse_model, parse_models):
        with pytest.raises(UsageProblem, match="set the key in WAVEDECK_MODEL_KEY") as caught:
            parse(form.format(text))
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["https://user:SECRET@host", "https://host/?key=SECRET", "https://host/#SECRET"]
)
def test_key_in_the_address_of_a_variable_is_not_shown(address: str) -> None:
    azure = {
        "AZURE_OPENAI_ENDPOINT": address,
        "OPENAI_API_VERSION": "2024-10-21",
        "AZURE_OPENAI_API_KEY": "k",
    }
    with pytest.raises(UsageProblem, match="write https://RESOURCE") as caught:
        check_models("azure:x", environ=azure, home_recordings=NOWHERE)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(UsageProblem, match="write openai:x@URL") as caught:
        check_models("openai:x", environ={"OPENAI_BASE_URL": address}, home_recordings=NOWHERE)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "environ", "message"),
    [
        ("anthropic:x", {}, "set ANTHROPIC_API_KEY"),
        ("openai:x", {"ANTHROPIC_API_KEY": "k"}, "set OPENAI_API_KEY"),
        ("openai:x", {"OPENAI_API_KEY": "  "}, "set OPENAI_API_KEY"),
        ("openai:x", {"OPENAI_API_KEY": "sk-é"}, "the key in OPENAI_API_KEY"),
        ("openai:x", {"OPENAI_API_KEY": "sk-1\nsk-2"}, "the key in OPENAI_API_KEY"),
        ("openai:x@http://h/v1", {"WAVEDECK_MODEL_KEY": "a b"}, "the key in WAVEDECK_MODEL_KEY"),
        (
            "anthropic:x",
            {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://gateway/llm"},
            "write anthropic:x@https://gateway/llm with WAVEDECK_MODEL_KEY, or unset it",
        ),
    ],
)
def test_unusable_key_or_address_is_named(text: str, environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        check_models(text, environ=environ, home_recordings=NOWHERE)
    assert message in str(caught.value)
    assert "sk-" not in str(caught.value)
    with pytest.raises(UsageProblem, match=re.escape(message)):
        open_client(text, environ=environ, home_recordings=NOWHERE)


def test_missing_recording_error_names_the_nearest(tmp_path: Path) -> None:
    for name in ("starter-mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recording.toml").write_text("")
    with pytest.raises(UsageProblem, match="there is recorded:starter-mine"):
        check_models("recorded:starter-min", environ={}, home_recordings=tmp_path)
    specs = check_models("recorded:other", environ={}, home_recordings=tmp_path)
    assert {spec.name for spec in specs.values()} == {"other"}


def test_check_of_a_model_name_loads_no_sdk() -> None:
    loaded = loaded_by(
        "from pathlib import Path; from engine.models import check_models;"
        "check_models('anthropic:x', environ={'ANTHROPIC_API_KEY': 'k'}, home_recordings=Path('x'))"
    )
    assert not loaded & {"anthropic", "openai", "httpx2", "torch", "triton", "git", "textual"}
