"""Keeps the official SDKs from reading settings of their own from the environment.

Both SDKs read addresses, keys, headers and log levels from the environment. Wavedeck passes keys and addresses
itself, so these variables are hidden while an SDK is imported and a client is created. The SDKs may read proxy
variables and certificates (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`, `SSL_CERT_DIR`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from engine.errors import UsageProblem
from engine.models.access import PROXIES

from .streams import bounded_bytes

PREFIXES = ("ANTHROPIC_", "OPENAI_", "AZURE_OPENAI_")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
T = TypeVar("T")


@contextmanager
def hidden_variables() -> Iterator[None]:
    """Hide the SDKs' own variables in the process's environment until the block ends."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def http_client(make: Callable[..., T], *, reply_bytes: int) -> T:
    """Returns an SDK's HTTP client that follows no redirect, because a redirect would forward prompts and key.

    It bounds each answer (`bounded_bytes`), because the SDKs keep lines and bodies of any length.

    It has no limit of connections (the SDKs' own is 1,000): how many requests are sent at the same time is for `Gate` to say.

    `UsageProblem` if the environment's certificates or proxies cannot be used. It names variables only, because a
    proxy's URL may contain a password.
    """
    # A dependency of the SDKs, so it is installed with them.
    import httpx2

    async def bound(response: Any) -> None:
        is_stream = response.is_success and "text/event-stream" in response.headers.get("content-type", "")
        read = response.aiter_bytes
        response.aiter_bytes = lambda: bounded_bytes(read(), is_stream=is_stream, reply_bytes=reply_bytes)

    try:
        return make(follow_redirects=False, limits=httpx2.Limits(), event_hooks={"response": [bound]})
    except OSError as error:
        named = _set(CERTIFICATES) or "the system's certificates"
        raise UsageProblem(
            f"{named} cannot be used ({error.strerror or type(error).__name__}): name a file of certificates in PEM, or unset it"
        ) from None
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        raise UsageProblem(
            f"{_set(PROXIES) or 'the proxy'} cannot be used ({type(error).__name__}): write http://HOST:PORT, or unset it"
        ) from None


def _set(names: tuple[str, ...]) -> str:
    return " or ".join(name for name in names if os.environ.get(name))
