"""Asks whether a model can be asked, before anything is judged: its server takes connections, and knows key and model.

Nothing here costs tokens.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from engine.errors import EngineDidNotStart, ModelError
from sessions.events import Role

from .access import access, key_variable
from .client import Checkable, Client
from .spec import ModelSpec, parse_model, parse_models

WAIT_S = 3.0
PORTS = {"http": 80, "https": 443}


def check_reachable(text: str, environ: Mapping[str, str], roles: Iterable[Role]) -> None:
    """Raise `EngineDidNotStart` if the server of a role's model takes no connection; blocks as `unreachable_because`."""
    for spec in dict.fromkeys(parse_models(text, roles).values()):
        if why := unreachable_because(spec, environ):
            raise EngineDidNotStart(
                f"the model {spec} cannot be asked: {why}; start its server, or correct its address"
            )


async def check_answers(clients: Iterable[Client]) -> None:
    """Raise `EngineDidNotStart` if the server of a client refuses its key, or does not know its model."""
    for client in {id(client): client for client in clients}.values():
        if not isinstance(client, Checkable):
            continue
        try:
            await client.check()
        except ModelError as error:
            variable = f" in {key_variable(parse_model(client.model))}" if error.reason == "bad_key" else ""
            raise EngineDidNotStart(
                f"the model {client.model} cannot be asked: {error.message}{variable}"
            ) from None


def unreachable_because(spec: ModelSpec, environ: Mapping[str, str]) -> str:
    """Return why the model's server takes no connection; empty if it does, or if the model is a recording.

    Sends no request and no key. Behind a proxy, this asks the proxy. `UsageProblem` as `access`. Blocks up to `WAIT_S` seconds.
    """
    if spec.provider == "recorded":
        return ""
    url = urlsplit(access(spec, environ).url)
    proxy = _proxy(url.scheme, url.hostname or "", environ)
    host, port = proxy or (url.hostname or "", url.port or PORTS.get(url.scheme, 443))
    where = f"proxy {host}:{port}" if proxy else f"{host}:{port}"
    try:
        socket.create_connection((host, port), timeout=WAIT_S).close()
    except TimeoutError:
        return f"{where} did not answer in {WAIT_S:g} s"
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
