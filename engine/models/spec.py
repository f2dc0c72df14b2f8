"""Model names as people write them: one model, or one for each role. `access` has keys and addresses.

The forms are `anthropic:NAME` and `openai:NAME`, both also with `@URL` for another server with the same protocol,
`azure:DEPLOYMENT`, `gemini:NAME` and `recorded:NAME`. By role: `generator=MODEL,reflector=MODEL`; a model without a
role answers the other roles.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from engine.errors import UsageProblem
from sessions.events import Role

SHIPPED_RECORDINGS = Path(__file__).resolve().parent.parent / "recordings"
ELSEWHERE = ("anthropic", "openai")
"""Providers that allow `@URL`, because other servers use their protocol."""
KNOWN = (*ELSEWHERE, "azure", "gemini", "recorded")
FORMS = "anthropic:NAME, openai:NAME, either with @URL, azure:DEPLOYMENT, gemini:NAME, or recorded:NAME"
HAS_SECRET = re.compile(r"://[^,]*@|(@|://).*[?#]", re.DOTALL)
"""A URL with a user name, a query or a fragment. Each of them can hold a key, which events would store."""
NAMES_ROLE = re.compile(r"\s*([A-Za-z_-]+)\s*=(.*)", re.DOTALL)


class ModelSpec(msgspec.Struct, frozen=True):
    """A model as a person named it."""

    provider: str
    """`anthropic`, `openai`, `azure`, `gemini` or `recorded`."""
    name: str
    url: str | None = None
    """Another server with the provider's protocol."""

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" + (f"@{self.url}" if self.url else "")


def parse_model(text: str) -> ModelSpec:
    """Returns the parts of a model's name. `UsageProblem` names the error and the most similar provider."""
    refuse_secrets(text)
    provider, colon, rest = text.partition(":")
    if not colon or not rest:
        raise UsageProblem(f"{text!r} names no model: write {FORMS}")
    if provider not in KNOWN:
        near = difflib.get_close_matches(provider, KNOWN, n=1)
        hint = f"did you mean {near[0]}:{rest}?" if near else f"write {FORMS}"
        raise UsageProblem(f"unknown model provider {provider!r}: {hint}")
    name, url = split_url(rest)
    if not name:
        raise UsageProblem(f"{text!r} names no model before the @: write {provider}:NAME@URL")
    if provider == "recorded":
        if url or "/" in name or name.startswith("."):
            raise UsageProblem(f"{text!r} is not the name of a recording: write recorded:NAME")
        return ModelSpec(provider, name)
    if url and provider not in ELSEWHERE:
        raise UsageProblem(
            f"{provider} models have their own address: write {provider}:{name}, or openai:{name}@{url}"
        )
    return ModelSpec(provider, name, url)


def parse_models(text: str, roles: Iterable[Role] = tuple(Role)) -> dict[Role, ModelSpec]:
    """Returns the model of each role. `UsageProblem` for a role that is unknown, named twice, or without a model.

    A text without any role is one model, even with commas.
    """
    refuse_secrets(text)
    wanted = tuple(role for role in Role if role in frozenset(roles))
    parts = text.split(",")
    if not any(NAMES_ROLE.match(part) for part in parts):
        return dict.fromkeys(wanted, parse_model(text))
    named: dict[Role | None, ModelSpec] = {}
    for part in parts:
        match = NAMES_ROLE.match(part)
        role = _role(match[1]) if match else None
        if role in named:
            twice = "the rest" if role is None else role.value
            raise UsageProblem(f"{text!r} names two models for {twice}; name one")
        named[role] = parse_model((match[2] if match else part).strip())
    idle = [role.value for role in named if role is not None and role not in wanted]
    if idle:
        raise UsageProblem(
            f"no {' or '.join(idle)} is asked here, only {_list_roles(wanted)}; leave that model out"
        )
    if None not in named and (missing := [role for role in wanted if role not in named]):
        raise UsageProblem(
            f"{text!r} names no model for {_list_roles(missing)}: add {missing[0].value}=MODEL, or a MODEL without a role for the rest"
        )
    if any(spec.provider == "recorded" for spec in named.values()):
        raise UsageProblem("a recording answers every role: name it alone, as recorded:NAME")
    return {role: named[role] if role in named else named[None] for role in wanted}


def recording_of(text: str) -> str | None:
    """Returns the name of the recording that the model names; `None` for a real model."""
    if any(NAMES_ROLE.match(part) for part in text.split(",")):
        return None
    spec = parse_model(text)
    return spec.name if spec.provider == "recorded" else None


def _role(word: str) -> Role:
    try:
        return Role(word.lower())
    except ValueError:
        near = difflib.get_close_matches(word.lower(), list(Role), n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {_list_roles(tuple(Role))}"
        raise UsageProblem(f"no model speaks as {word!r}: {hint}") from None


def _list_roles(roles: Iterable[Role]) -> str:
    return ", ".join(role.value for role in roles)


def split_url(text: str) -> tuple[str, str | None]:
    """Returns a model's name and the URL after its last `@`; an `@` without a URL belongs to the name."""
    name, at, url = text.rpartition("@")
    if not at or "://" not in url:
        return text, None
    if not is_http_url(url):
        raise UsageProblem(
            f"{url!r} is not the address of a model server: write http://HOST:PORT or https://HOST/..."
        )
    return name, url


def refuse_secrets(text: str) -> None:
    """Raise `UsageProblem`, without the text, if the name of a model or provider has a URL that can hold a key."""
    if HAS_SECRET.search(text):
        raise UsageProblem(
            "a model's URL with a user name, a key, ? or # is not accepted: "
            "write http://HOST:PORT/PATH and set the key in WAVEDECK_MODEL_KEY"
        )


def is_http_url(url: str) -> bool:
    """True if a client can connect to the URL."""
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a malformed IPv6 address, or a port that is none
        return False


def recordings(home_recordings: Path) -> dict[str, Path]:
    """Returns the folders of all recordings by name; a person's own comes before a shipped one."""
    return {
        folder.name: folder
        for place in (SHIPPED_RECORDINGS, home_recordings)
        if place.is_dir()
        for folder in place.iterdir()
        if (folder / "recording.toml").is_file()
    }


def find_recording(name: str, home_recordings: Path) -> Path:
    """Returns the folder of a recording; `UsageProblem` names one with a similar name."""
    folders = recordings(home_recordings)
    if name in folders:
        return folders[name]
    near = difflib.get_close_matches(name, folders, n=1)
    hint = f"there is recorded:{near[0]}" if near else f"there are {', '.join(sorted(folders)) or 'none'}"
    raise UsageProblem(
        f"no recording is called {name!r}: {hint}; `wavedeck sessions record SESSION NAME` makes one"
    )
