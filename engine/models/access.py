"""Where a model is reached, with what key and which further headers: all of it from the environment that is given here.

A provider's key goes to the provider alone. Behind an `@URL` it is `WAVEDECK_MODEL_KEY`, or none. Headers of a gateway
(`WAVEDECK_MODEL_HEADERS`) go to servers that a person named, by `@URL` or as Azure's endpoint, and never to a provider's own.
`ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` are not followed: where one of them would have sent the prompts elsewhere, that is
said instead of guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from engine.errors import UsageProblem

from .spec import ModelSpec

KEY_VARIABLE = "WAVEDECK_MODEL_KEY"
HEADERS_VARIABLE = "WAVEDECK_MODEL_HEADERS"
AZURE_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"
AZURE_VERSION = "OPENAI_API_VERSION"
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")
NO_KEY = "none"
"""What servers that want no key are sent: the SDKs insist on one."""
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
OWN_HEADERS = frozenset(
    {
        "host",
        "connection",
        "content-length",
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "accept",
    }
)
"""What a request is made of: not a person's to set."""
SHORTEST_SECRET = 8
"""Characters of a header's value from which on it may be a secret; a shorter one (`eu`) would black out words of messages."""


class Provider(NamedTuple):
    """A service that models are rented from."""

    key_variable: str
    url_variable: str
    """The variable with which its SDK is sent elsewhere, and Wavedeck is not; empty: there is none."""
    url: str
    """Empty where the address is a person's own."""


PROVIDERS = {
    "anthropic": Provider("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "azure": Provider("AZURE_OPENAI_API_KEY", "", ""),
    "gemini": Provider("GEMINI_API_KEY", "", "https://generativelanguage.googleapis.com/v1beta/openai/"),
}

SECRETS = (
    KEY_VARIABLE,
    HEADERS_VARIABLE,
    AZURE_TOKEN,
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_ADMIN_KEY",
    *(each.key_variable for each in PROVIDERS.values()),
)
"""Variables that no child of the engine is born with."""


class Access(NamedTuple):
    """Where a model is reached, and with what."""

    url: str
    key: str
    headers: tuple[tuple[str, str], ...] = ()
    """Of a gateway, beside those that the protocol has."""
    version: str = ""
    """Azure's API version."""
    is_token: bool = False
    """Whether the key is a token of Microsoft Entra ID."""
    hidden: tuple[str, ...] = ()
    """Further secrets that a message might repeat: the password of a proxy."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may repeat, longest first."""
        values = [value for _, value in self.headers if len(value) >= SHORTEST_SECRET]
        keys = [self.key] if self.key != NO_KEY else []
        return tuple(sorted({*keys, *values, *self.hidden}, key=len, reverse=True))


def access(spec: ModelSpec, environ: Mapping[str, str]) -> Access:
    """How a provider's model is reached. `UsageProblem` names the variable that is missing or in the way."""
    provider = PROVIDERS[spec.provider]
    hidden = proxy_passwords(environ)
    if spec.url is not None:
        key = sendable(KEY_VARIABLE, environ.get(KEY_VARIABLE) or NO_KEY)
        return Access(spec.url, key, extra_headers(environ), hidden=hidden)
    if spec.provider == "azure":
        return azure_access(environ)._replace(hidden=hidden)
    elsewhere = environ.get(provider.url_variable, "")
    if elsewhere.rstrip("/") not in ("", provider.url):
        raise UsageProblem(
            f"{provider.url_variable} is set and Wavedeck does not follow it: "
            f"write {spec}@{elsewhere} with {KEY_VARIABLE}, or unset it"
        )
    key = environ.get(provider.key_variable, "")
    if not key.strip():
        raise UsageProblem(
            f"{spec} needs a key: set {provider.key_variable}, or try --model recorded:starter, which needs none"
        )
    return Access(provider.url, sendable(provider.key_variable, key), hidden=hidden)


def azure_access(environ: Mapping[str, str]) -> Access:
    """A person's Azure resource, by the variables that Azure's own SDK reads."""
    endpoint = environ.get(AZURE_ENDPOINT, "").strip()
    if not endpoint.startswith(("http://", "https://")) or not urlsplit(endpoint).hostname:
        raise UsageProblem(f"azure:DEPLOYMENT needs {AZURE_ENDPOINT}, as https://RESOURCE.openai.azure.com")
    if "@" in urlsplit(endpoint).netloc:
        raise UsageProblem(
            f"{AZURE_ENDPOINT} holds a user name or key: take it out and set AZURE_OPENAI_API_KEY"
        )
    version = environ.get(AZURE_VERSION, "").strip()
    if not re.fullmatch(r"[A-Za-z0-9._-]+", version):
        raise UsageProblem(f"azure:DEPLOYMENT needs {AZURE_VERSION}, as 2024-10-21")
    variables = (PROVIDERS["azure"].key_variable, AZURE_TOKEN)
    variable = next((name for name in variables if environ.get(name, "").strip()), None)
    if variable is None:
        raise UsageProblem(f"azure:DEPLOYMENT needs a key: set {variables[0]}, or a token in {variables[1]}")
    key = sendable(variable, environ[variable])
    return Access(endpoint, key, extra_headers(environ), version, is_token=variable == AZURE_TOKEN)


def sendable(variable: str, key: str) -> str:
    """The key without the line break that a shell often leaves on it; `UsageProblem` when no header can carry it."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageProblem(f"the key in {variable} holds a character that no key has: set it again")
    return key


def extra_headers(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The headers in `WAVEDECK_MODEL_HEADERS`, one `NAME: VALUE` a line. `UsageProblem` names a wrong line, never its value."""
    found: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(environ.get(HEADERS_VARIABLE, "").split("\n"), start=1):
        if not line.strip():
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        where = f"line {number} of {HEADERS_VARIABLE}"
        if not colon or not HEADER_NAME.fullmatch(name):
            raise UsageProblem(f"{where} is no header: write NAME: VALUE, one a line")
        if not value or not value.isascii() or not value.isprintable():
            raise UsageProblem(
                f"{where}: the value of {name} is empty or holds a character that no header can carry"
            )
        if name.lower() in OWN_HEADERS:
            raise UsageProblem(f"{where}: {name} is set by the protocol; take it out")
        if name.lower() in found:
            raise UsageProblem(f"{where}: {name} is there twice; keep one")
        found[name.lower()] = (name, value)
    return tuple(found.values())


def proxy_passwords(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Passwords that stand in the URLs of proxies."""
    found = []
    for name in PROXIES:
        try:
            password = urlsplit(environ.get(name, "")).password
        except ValueError:
            continue
        if password:
            found += [password, unquote(password)]
    return tuple(dict.fromkeys(found))
