"""How models are named, what a wrong name is told, and that nothing of an SDK is needed to find out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import UsageProblem
from engine.models import ModelSpec, check_models, open_client, parse_model

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
def test_a_name_is_taken_apart_and_put_together_again(text: str, spec: ModelSpec) -> None:
    assert parse_model(text) == spec
    assert str(spec) == text


@pytest.mark.parametrize(
    ("text", "told"),
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
        ("openai:x@http://user:secret@host/v1", "WAVEDECK_MODEL_KEY"),
        ("recorded:../../etc", "not the name of a recording"),
        ("recorded:x@http://host", "not the name of a recording"),
    ],
)
def test_a_wrong_name_is_told_what_is_right(text: str, told: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_model(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "environ", "told"),
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
def test_a_key_or_address_that_cannot_be_used_is_named(text: str, environ: dict[str, str], told: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        check_models(text, environ=environ, home_recordings=NOWHERE)
    assert told in str(caught.value)
    assert "sk-" not in str(caught.value)
    with pytest.raises(UsageProblem, match=re.escape(told)):
        open_client(text, environ=environ, home_recordings=NOWHERE)


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("anthropic:x", {"ANTHROPIC_API_KEY": "k\n", "ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}),
        ("openai:x", {"OPENAI_API_KEY": "k"}),
        ("openai:x@http://localhost:1/v1", {}),
    ],
)
def test_what_is_there_is_accepted(text: str, environ: dict[str, str]) -> None:
    found = check_models(text, environ=environ, home_recordings=NOWHERE)
    assert {str(spec) for spec in found.values()} == {text}


def test_a_missing_recording_names_the_nearest(tmp_path: Path) -> None:
    for name in ("starter-mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recording.toml").write_text("")
    with pytest.raises(UsageProblem, match="there is recorded:starter-mine"):
        check_models("recorded:starter-min", environ={}, home_recordings=tmp_path)
    found = check_models("recorded:other", environ={}, home_recordings=tmp_path)
    assert {spec.name for spec in found.values()} == {"other"}


def test_checking_a_name_loads_no_sdk() -> None:
    code = (
        "import sys; from pathlib import Path; from engine.models import check_models;"
        "check_models('anthropic:x', environ={'ANTHROPIC_API_KEY': 'k'}, home_recordings=Path('x'));"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"anthropic", "openai", "httpx2", "torch", "triton", "git", "textual"}
