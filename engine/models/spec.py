"""How a person names a model: `anthropic:NAME[@URL]`, `openai:NAME[@URL]`, `recorded:NAME`.

Keys come from the environment that is given here and from nowhere else. A provider's key goes to the provider alone:
behind an `@URL` it is `WAVEDECK_MODEL_KEY`, or none. `ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` are not followed: where
one of them would have sent the prompts elsewhere, that is said instead of guessed at.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from engine.errors import UsageProblem

SHIPPED_RECORDINGS = Path(__file__).resolve().parent.parent / "recordings"
NO_KEY = "none"
"""What servers that want no key are sent: the SDKs insist on one."""
FORMS = "anthropic:NAME, openai:NAME, either with @URL, or recorded:NAME"


class Provider(NamedTuple):
    """A service that models are rented from."""

    key_variable: str
    url_variable: str
    url: str


PROVIDERS = {
    "anthropic": Provider("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
}


class ModelSpec(msgspec.Struct, frozen=True):
    """A model as a person named it."""

    provider: str
    """`anthropic`, `openai` or `recorded`."""
    name: str
    url: str | None = None
    """Another server that speaks the provider's protocol."""

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" + (f"@{self.url}" if self.url else "")


class Access(NamedTuple):
    """Where a model is reached, and with what key."""

    url: str
    key: str


def parse_model(text: str) -> ModelSpec:
    """The parts of a model's name. `UsageProblem` says what is wrong with it, and the nearest right provider."""
    provider, colon, rest = text.partition(":")
    known = [*PROVIDERS, "recorded"]
    if not colon or not rest:
        raise UsageProblem(f"{text!r} names no model: write {FORMS}")
    if provider not in known:
        near = difflib.get_close_matches(provider, known, n=1)
        hint = f"did you mean {near[0]}:{rest}?" if near else f"write {FORMS}"
        raise UsageProblem(f"unknown model provider {provider!r}: {hint}")
    name, url = split_url(rest)
    if not name:
        raise UsageProblem(f"{text!r} names no model before the @: write {provider}:NAME@URL")
    if provider == "recorded":
        if url or "/" in name or name.startswith("."):
            raise UsageProblem(f"{text!r} is no recording's name: write recorded:NAME")
        return ModelSpec(provider, name)
    return ModelSpec(provider, name, url)


def split_url(text: str) -> tuple[str, str | None]:
    """A model's name and the URL behind its last `@`. An `@` that no URL follows belongs to the name."""
    name, at, url = text.rpartition("@")
    if not at or not ("://" in url or "://" in text):
        return text, None
    if "://" not in url:
        raise UsageProblem(
            "a model's URL that holds a user name or key is not accepted: take it out and set WAVEDECK_MODEL_KEY"
        )
    if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
        raise UsageProblem(
            f"{url!r} is no address of a model server: write http://HOST:PORT or https://HOST/..."
        )
    return name, url


def access(spec: ModelSpec, environ: Mapping[str, str]) -> Access:
    """Address and key of a provider's model. `UsageProblem` names the variable that is missing or in the way."""
    provider = PROVIDERS[spec.provider]
    if spec.url is not None:
        return Access(spec.url, sendable("WAVEDECK_MODEL_KEY", environ.get("WAVEDECK_MODEL_KEY") or NO_KEY))
    elsewhere = environ.get(provider.url_variable, "")
    if elsewhere.rstrip("/") not in ("", provider.url):
        raise UsageProblem(
            f"{provider.url_variable} is set and Wavedeck does not follow it: "
            f"write {spec}@{elsewhere} with WAVEDECK_MODEL_KEY, or unset it"
        )
    key = environ.get(provider.key_variable, "")
    if not key.strip():
        raise UsageProblem(
            f"{spec} needs a key: set {provider.key_variable}, or try --model recorded:starter, which needs none"
        )
    return Access(provider.url, sendable(provider.key_variable, key))


def sendable(variable: str, key: str) -> str:
    """The key without the line break that a shell often leaves on it; `UsageProblem` when no header can carry it."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageProblem(f"the key in {variable} holds a character that no key has: set it again")
    return key


def find_recording(name: str, home_recordings: Path) -> Path:
    """Folder of a recording: a person's own before the shipped one. `UsageProblem` names the nearest there is."""
    folders = {
        folder.name: folder
        for place in (SHIPPED_RECORDINGS, home_recordings)
        if place.is_dir()
        for folder in place.iterdir()
        if (folder / "recording.toml").is_file()
    }
    if name in folders:
        return folders[name]
    near = difflib.get_close_matches(name, folders, n=1)
    known = f"there is recorded:{near[0]}" if near else f"there are {', '.join(sorted(folders)) or 'none'}"
    raise UsageProblem(f"no recording is called {name!r}: {known}; `wavedeck record SESSION NAME` makes one")


def check_model(text: str, *, environ: Mapping[str, str], home_recordings: Path) -> ModelSpec:
    """The parsed name, once key or recording are known to be there; loads no SDK and asks nobody."""
    spec = parse_model(text)
    if spec.provider == "recorded":
        find_recording(spec.name, home_recordings)
    else:
        access(spec, environ)
    return spec
