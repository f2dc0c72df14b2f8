"""Keeps a person's keys and files private: finds the variables that hold keys, makes folders that only their owner can open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

_NAME = re.compile(
    r"KEY|TOKEN(?!IZ)|SECRET|CRED|COOKIE|BEARER|JWT|WEBHOOK|HEADER|CONN(ECTION)?_?STR|PASSW|PASSPHRASE|PASSCODE|_PWD"
    r"|AUTH(?!OR(?!I))|(?<!BY)(?<!COM)PASS(?![A-Z])|(?<![A-Z])(PAT|DSN|SAS)(?![A-Z])",
    re.IGNORECASE,
)
"""No part is in a usual harmless name: `PATH`, `PWD`, `GIT_AUTHOR_NAME`, `TOKENIZERS_PARALLELISM`."""
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/?#\s]+)@")
"""In an address."""


def holds_key(name: str, value: str) -> bool:
    """True if a variable's name says that it holds a key, or if its value has an address with a password.

    `SSH_AUTH_SOCK` counts: who has the socket can use the person's keys.
    """
    return bool(_NAME.search(name) or _PASSWORD.search(value))


def keys_in(environ: Mapping[str, str]) -> set[str]:
    """Returns the values of the variables that hold keys; of an address, only the password."""
    named = {value for name, value in environ.items() if _NAME.search(name)}
    return named | set(passwords_in(environ.values()))


def passwords_in(values: Iterable[str]) -> Iterator[str]:
    """Yield the passwords of addresses in texts, as they are written and as they are meant."""
    for value in values:
        for password in _PASSWORD.findall(value):
            yield from (password, unquote(password))


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700; a folder that exists keeps its mode. Raises `OSError`."""
    # `parents=True` would give the parents the mode of the umask.
    for parent in reversed(folder.parents):
        if not parent.exists():
            parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
