"""What the official SDKs pick up by themselves, and how they are kept from it.

Both read addresses, keys, headers and log levels from the process's environment. Here keys and addresses are given by hand,
so these variables are out of sight while an SDK is imported and a client is made. Proxy variables and certificate
authorities (`HTTPS_PROXY`, `SSL_CERT_FILE`) stay theirs to read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

PREFIXES = ("ANTHROPIC_", "OPENAI_")


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
