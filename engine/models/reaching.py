"""Asks whether the server of a model answers: opens a connection and closes it. Sends no request, no key, and costs nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from engine.errors import EngineDidNotStart
from sessions.events import Role

from .access import access
from .spec import ModelSpec, parse_models

WAIT_S = 3.0
PORTS = {"http": 80, "https": 443}


def check_reachable(text: str, environ: Mapping[str, str], roles: Iterable[Role]) -> None:
    """Raise `EngineDidNotStart` if the server of a role's model takes no connection; blocks as `unreachable_because`."""
    for spec in dict.fromkeys(parse_models(text, roles).values()):
        if why := unreachable_because(spec, environ):
            raise EngineDidNotStart(
                f"the model {spec} cannot be asked: {why}; start its server, or correct its address"
            )


def unreachable_because(spec: ModelSpec, environ: Mapping[str, str], *, wait_s: float = WAIT_S) -> str:
    """Return why the model's server takes no connection; empty if it does, or if the model is a recording.

    Behind a proxy, this asks the proxy. `UsageProblem` as `access`. Blocks up to `wait_s` seconds.
    """
    if spec.provider == "recorded":
        return ""
    url = urlsplit(access(spec, environ).url)
    proxy = _proxy(url.scheme, url.hostname or "", environ)
    host, port = proxy or (url.hostname or "", url.port or PORTS.get(url.scheme, 443))
    where = f"proxy {host}:{port}" if proxy else f"{host}:{port}"
    try:
        socket.create_connection((host, port), timeout=wait_s).close()
    except TimeoutError:
        return f"{where} did not answer in {wait_s:g} s"
    except OSError as error:
        return f"{where} takes no connection: {error.strerror or error}"
    return ""


def _proxy(scheme: str, host: str, environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port of the proxy that a call to the host goes through."""
    no_proxy = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    direct = [name.strip().lstrip(".") for name in no_proxy.split(",") if name.strip()]
    if "*" in direct or any(host == name or host.endswith(f".{name}") for name in direct):
        return None
    for name in (f"{scheme}_proxy", "all_proxy"):
        text = environ.get(name) or environ.get(name.upper()) or ""
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if text and parts.hostname:
            return parts.hostname, parts.port or PORTS.get(parts.scheme, 80)
    return None
