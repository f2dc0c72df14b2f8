"""Sections of doctor about models, configuration and terminal."""

from __future__ import annotations

import locale
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.errors import UsageProblem
from engine.models.access import AZURE_ENDPOINT, HEADERS_VARIABLE, PROVIDERS, azure_access, extra_headers
from engine.models.spec import ELSEWHERE, SHIPPED_RECORDINGS
from sessions.home import home_from
from tui.config import load
from tui.diagnostics import Complaint

from .doctor_findings import Finding, State

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
SMALLEST = (80, 24)


def models(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the keys that are set (by name, never by value) and the recordings."""
    present = False
    for name, provider in PROVIDERS.items():
        if environ.get(provider.key_variable, "").strip():
            present = True
            yield Finding(
                provider.key_variable,
                State.OK,
                "set",
                f"--model {name}:NAME can be used; its calls cost money",
            )
        else:
            where = " without @URL" if name in ELSEWHERE else ""
            yield Finding(provider.key_variable, State.NOTE, "not set", f"{name}:NAME cannot be used{where}")
        if environ.get(provider.url_variable, "").rstrip("/") not in ("", provider.url):
            yield Finding(
                provider.url_variable,
                State.WARNING,
                "set, but ignored",
                f"write --model {name}:NAME@URL, with its key in WAVEDECK_MODEL_KEY",
            )
    has_own = bool(environ.get("WAVEDECK_MODEL_KEY", "").strip())
    yield Finding(
        "WAVEDECK_MODEL_KEY",
        State.OK if has_own else State.NOTE,
        "set" if has_own else "not set",
        "" if has_own else "models named with @URL are called without a key; most local servers accept this",
    )
    yield from _gateway(environ)
    proxies = [name for name in PROXIES if environ.get(name)]
    if proxies:
        yield Finding("proxy", State.NOTE, f"{', '.join(proxies)} set", "model calls go through it")
    names = recordings(home_from(environ).recordings)
    listed = ", ".join(f"recorded:{name}" for name in names)
    yield Finding(
        "recordings",
        State.OK if names else State.WARNING,
        listed or "none found",
        ("no key is needed for recordings" + ("" if present else "; `wavedeck run` plays recorded:starter"))
        if names
        else "the shipped recording is missing: install Wavedeck again",
    )


def _gateway(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield headers (by name, never by value), Azure's variables if set, and the user's own certificates."""
    try:
        headers = ", ".join(name for name, _ in extra_headers(environ))
        if headers:
            yield Finding(HEADERS_VARIABLE, State.OK, f"sets {headers}", "sent only to @URLs and to Azure")
    except UsageProblem as error:
        yield Finding(HEADERS_VARIABLE, State.WARNING, "cannot be used", str(error))
    if environ.get(AZURE_ENDPOINT, "").strip():
        try:
            azure_access(environ)
        except UsageProblem as error:
            yield Finding(AZURE_ENDPOINT, State.WARNING, "cannot be used yet", str(error))
        else:
            yield Finding(AZURE_ENDPOINT, State.OK, "set", "--model azure:DEPLOYMENT can be used")
    for name in CERTIFICATES:
        if environ.get(name):
            there = Path(environ[name]).exists()
            yield Finding(
                name,
                State.NOTE if there else State.WARNING,
                "set" if there else "names a path that does not exist",
                "only these certificates are trusted for model servers",
            )


def recordings(own: Path) -> list[str]:
    """Return the names of all recordings, shipped and the user's own."""
    return sorted(
        {
            folder.name
            for place in (SHIPPED_RECORDINGS, own)
            if place.is_dir()
            for folder in place.iterdir()
            if (folder / "recording.toml").is_file()
        }
    )


def configuration(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether the settings can be read, and the source of each setting."""
    try:
        configured = load({}, environ=environ, folder=Path.cwd())
    except Complaint as error:
        yield Finding(
            "settings", State.WARNING, str(error), "commands that read settings fail with this message"
        )
        return
    for remark in configured.remarks:
        yield Finding("environment", State.WARNING, remark)
    if not configured.origins:
        yield Finding("settings", State.OK, "none set: all defaults")
    for key, origin in configured.origins.items():
        yield Finding(key, State.OK, f"from {origin}")


def terminal(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether the cockpit can be opened here, and how to improve it."""
    kind = environ.get("TERM", "")
    both = sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    if not both or kind in ("", "dumb"):
        why = "standard input or output is not a terminal" if not both else f"TERM is {kind or 'not set'}"
        yield Finding("cockpit", State.NOTE, why, "runs are headless, replay and attach print plain text")
    else:
        yield from _screen(kind, environ)
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") != "utf8":
        yield Finding(
            "encoding",
            State.WARNING,
            encoding,
            "lines and symbols will look wrong; set LANG to a UTF-8 locale",
        )
    if environ.get("TMUX"):
        yield Finding(
            "tmux",
            State.NOTE,
            "inside tmux",
            "copying needs `set -g set-clipboard on`; `set -s escape-time 10` makes escape quick",
        )
    elif environ.get("STY"):
        yield Finding("screen", State.NOTE, "inside GNU screen", "colours are few there; tmux shows more")
    if environ.get("SSH_CONNECTION"):
        yield Finding(
            "ssh",
            State.NOTE,
            "logged in over SSH",
            "on a slow line `ssh -C` makes the screens 10 times smaller",
        )


def _screen(kind: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    size = shutil.get_terminal_size()
    small = size.columns < SMALLEST[0] or size.lines < SMALLEST[1]
    yield Finding(
        "cockpit",
        State.WARNING if small else State.OK,
        f"TERM {kind}, {size.columns} columns by {size.lines} lines",
        f"below {SMALLEST[0]} by {SMALLEST[1]} parts of the screens are cut" if small else "",
    )
    if environ.get("NO_COLOR"):
        yield Finding("colours", State.NOTE, "NO_COLOR is set", "the cockpit draws without colours")
    elif environ.get("COLORTERM") in ("truecolor", "24bit"):
        yield Finding("colours", State.OK, "16 million")
    elif "256color" in kind:
        yield Finding("colours", State.OK, "256", "COLORTERM=truecolor gives more, where the terminal can")
    else:
        yield Finding("colours", State.NOTE, "16", "TERM=xterm-256color or tmux-256color gives more")
