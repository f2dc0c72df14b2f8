"""Section of doctor about models: keys, gateways, proxies, certificates and recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.errors import UsageProblem
from engine.models.access import (
    AZURE_ENDPOINT,
    HEADERS_VARIABLE,
    PROVIDERS,
    PROXIES,
    azure_access,
    extra_headers,
)
from engine.models.spec import ELSEWHERE, recordings
from sessions.home import home_from
from tui.doctor.doctor_findings import DoctorFinding, State, note, ok, warning

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def models(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield the keys that are set (by name, never by value) and the recordings."""
    present = False
    for name, provider in PROVIDERS.items():
        if environ.get(provider.key_variable, "").strip():
            present = True
            yield ok(provider.key_variable, "set", f"--model {name}:NAME can be used; its calls cost money")
        else:
            where = " without @URL" if name in ELSEWHERE else ""
            yield note(provider.key_variable, "not set", f"{name}:NAME cannot be used{where}")
        if environ.get(provider.url_variable, "").rstrip("/") not in ("", provider.url):
            yield warning(
                provider.url_variable,
                "set, but ignored",
                f"write --model {name}:NAME@URL, with its key in WAVEDECK_MODEL_KEY",
            )
    has_own = bool(environ.get("WAVEDECK_MODEL_KEY", "").strip())
    yield DoctorFinding(
        "WAVEDECK_MODEL_KEY",
        State.OK if has_own else State.NOTE,
        "set" if has_own else "not set",
        "" if has_own else "models named with @URL are called without a key; most local servers accept this",
    )
    yield from _gateway(environ)
    proxies = [name for name in PROXIES if environ.get(name)]
    if proxies:
        yield note("proxy", f"{', '.join(proxies)} set", "model calls go through it")
    names = sorted(recordings(home_from(environ).recordings))
    listed = ", ".join(f"recorded:{name}" for name in names)
    yield DoctorFinding(
        "recordings",
        State.OK if names else State.WARNING,
        listed or "none found",
        ("no key is needed for recordings" + ("" if present else "; `wavedeck run` plays recorded:starter"))
        if names
        else "the shipped recording is missing: install Wavedeck again",
    )


def _gateway(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield headers (by name, never by value), Azure's variables if set, and the user's own certificates."""
    try:
        headers = ", ".join(name for name, _ in extra_headers(environ))
        if headers:
            yield ok(HEADERS_VARIABLE, f"sets {headers}", "sent only to @URLs and to Azure")
    except UsageProblem as error:
        yield warning(HEADERS_VARIABLE, "cannot be used", str(error))
    if environ.get(AZURE_ENDPOINT, "").strip():
        try:
            azure_access(environ)
        except UsageProblem as error:
            yield warning(AZURE_ENDPOINT, "cannot be used yet", str(error))
        else:
            yield ok(AZURE_ENDPOINT, "set", "--model azure:DEPLOYMENT can be used")
    for name in CERTIFICATES:
        if environ.get(name):
            there = Path(environ[name]).exists()
            yield DoctorFinding(
                name,
                State.NOTE if there else State.WARNING,
                "set" if there else "names a path that does not exist",
                "only these certificates are trusted for model servers",
            )
