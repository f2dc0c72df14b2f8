"""The address, key and extra headers of a model, all taken from the given environment.

A provider's key is sent only to that provider. A server behind an `@URL` gets `WAVEDECK_MODEL_KEY` or no key. Gateway
headers (`WAVEDECK_MODEL_HEADERS`) are sent only to servers that a person named, by `@URL` or as Azure's endpoint.

`ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` are ignored. If one of them points to another server, an error says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from engine.errors import UsageProblem
from suites.privacy import passwords_in

from .spec import HAS_SECRET, ModelSpec, is_http_url

KEY_VARIABLE = "WAVEDECK_MODEL_KEY"
HEADERS_VARIABLE = "WAVEDECK_MODEL_HEADERS"
AZURE_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"
AZURE_VERSION = "OPENAI_API_VERSION"
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")
NO_KEY = "none"
"""The key for servers that want none: the SDKs insist on a key."""
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
"""Headers that the protocol sets; a person cannot set them."""
SHORTEST_SECRET = 8
"""Shortest header value that counts as a secret. Hiding shorter values (`eu`) would remove ordinary words from
messages."""


class Provider(NamedTuple):
    """A service that sells model calls."""

    key_variable: str
    url_variable: str
    """The variable that redirects the provider's SDK; Wavedeck ignores it. Empty if there is none."""
    url: str
    """Empty if each person has an address of their own."""


PROVIDERS = {
    "anthropic": Provider("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "azure": Provider("AZURE_OPENAI_API_KEY", "", ""),
    "gemini": Provider("GEMINI_API_KEY", "", "https://generativelanguage.googleapis.com/v1beta/openai/"),
}


class Access(NamedTuple):
    """Address, key and headers for one model."""

    url: str
    key: str
    headers: tuple[tuple[str, str], ...] = ()
    """Headers for a gateway, besides those of the protocol."""
    version: str = ""
    """Azure's API version."""
    is_token: bool = False
    """True if the key is a token of Microsoft Entra ID."""
    hidden: tuple[str, ...] = ()
    """Further secrets that a message might repeat, such as the password of a proxy."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no message may repeat, longest first."""
        values = [value for _, value in self.headers if len(value) >= SHORTEST_SECRET]
        keys = [self.key] if self.key != NO_KEY else []
        return tuple(sorted({*keys, *values, *self.hidden}, key=len, reverse=True))


def access(spec: ModelSpec, environ: Mapping[str, str]) -> Access:
    """Returns the access to a model. `UsageProblem` names the variable that is missing or conflicts."""
    provider = PROVIDERS[spec.provider]
    hidden = tuple(passwords_in(environ.get(name, "") for name in PROXIES))
    if spec.url is not None:
        key = _checked_key(KEY_VARIABLE, environ.get(KEY_VARIABLE) or NO_KEY)
        return Access(spec.url, key, extra_headers(environ), hidden=hidden)
    if spec.provider == "azure":
        return azure_access(environ)._replace(hidden=hidden)
    elsewhere = environ.get(provider.url_variable, "")
    if elsewhere.rstrip("/") not in ("", provider.url):
        named = f"{spec}@{elsewhere}"
        raise UsageProblem(
            f"{provider.url_variable} is set, but Wavedeck ignores it: "
            f"write {f'{spec}@URL' if HAS_SECRET.search(named) else named} with {KEY_VARIABLE}, or unset it"
        )
    key = environ.get(provider.key_variable, "")
    if not key.strip():
        raise UsageProblem(
            f"{spec} needs a key: set {provider.key_variable}, or try --model recorded:starter, which needs none"
        )
    return Access(provider.url, _checked_key(provider.key_variable, key), hidden=hidden)


def key_variable(spec: ModelSpec) -> str:
    """Returns the variable with the key of a model."""
    return KEY_VARIABLE if spec.url is not None else PROVIDERS[spec.provider].key_variable


def azure_access(environ: Mapping[str, str]) -> Access:
    """Returns the access to a person's Azure resource, from the variables that Azure's own SDK reads."""
    endpoint = environ.get(AZURE_ENDPOINT, "").strip()
    if not is_http_url(endpoint):
        raise UsageProblem(f"azure:DEPLOYMENT needs {AZURE_ENDPOINT}, as https://RESOURCE.openai.azure.com")
    if HAS_SECRET.search(endpoint):
        raise UsageProblem(
            f"{AZURE_ENDPOINT} contains a user name, a key, ? or #: "
            "write https://RESOURCE.openai.azure.com and set AZURE_OPENAI_API_KEY"
        )
    version = environ.get(AZURE_VERSION, "").strip()
    if not re.fullmatch(r"[A-Za-z0-9._-]+", version):
        raise UsageProblem(f"azure:DEPLOYMENT needs {AZURE_VERSION}, as 2024-10-21")
    variables = (PROVIDERS["azure"].key_variable, AZURE_TOKEN)
    variable = next((name for name in variables if environ.get(name, "").strip()), None)
    if variable is None:
        raise UsageProblem(f"azure:DEPLOYMENT needs a key: set {variables[0]}, or a token in {variables[1]}")
    key = _checked_key(variable, environ[variable])
    return Access(endpoint, key, extra_headers(environ), version, is_token=variable == AZURE_TOKEN)


def _checked_key(variable: str, key: str) -> str:
    """Returns the key without surrounding white space; `UsageProblem` if no header can carry it."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageProblem(f"the key in {variable} contains an invalid character: set it again")
    return key


def extra_headers(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Returns the headers in `WAVEDECK_MODEL_HEADERS`, one `NAME: VALUE` per line.

    `UsageProblem` names a wrong line, never its value.
    """
    headers: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(environ.get(HEADERS_VARIABLE, "").split("\n"), start=1):
        if not line.strip():
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        where = f"line {number} of {HEADERS_VARIABLE}"
        if not colon or not HEADER_NAME.fullmatch(name):
            raise UsageProblem(f"{where} is not a header: write one NAME: VALUE per line")
        if not value or not value.isascii() or not value.isprintable():
            raise UsageProblem(
                f"{where}: the value of {name} is empty or contains a character that no header can carry"
            )
        if name.lower() in OWN_HEADERS:
            raise UsageProblem(f"{where}: {name} is set by the protocol; remove it")
        if name.lower() in headers:
            raise UsageProblem(f"{where}: {name} appears twice; remove one of them")
        headers[name.lower()] = (name, value)
    return tuple(headers.values())
