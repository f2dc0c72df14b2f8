"""What the official SDKs pick up by themselves, and how they are kept from it.

Both read addresses, keys, headers and log levels from the process's environment. Here keys and addresses are given by hand,
so these variables are out of sight while an SDK is imported and a client is made. Proxy variables and certificate
authorities (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`, `SSL_CERT_DIR`) stay theirs to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from engine.errors import UsageProblem

from .access import PROXIES

PREFIXES = ("ANTHROPIC_", "OPENAI_", "AZURE_OPENAI_")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
T = TypeVar("T")


@contextmanager
def hidden_variables() -> Iterator[None]:
    """The process's environment without the SDKs' own variables, until the block ends."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def http_client(make: Callable[..., T]) -> T:
    """An SDK's HTTP client that follows no redirect: that would carry prompts and key to wherever it points.

    `UsageProblem` when the environment's certificates or proxies cannot be used; it names variables, for a proxy's URL may
    hold a password.
    """
    # The SDKs' own: it is there once one of them is.
    import httpx2

    try:
        return make(follow_redirects=False)
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
