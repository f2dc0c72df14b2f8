"""Which sessions were made in this home: a ref for each of them, below a key that only this home and its mirrors have.

The ref of a session follows its journal. A session that another home made has no such ref, and one that somebody else
continued has a journal beyond it. `git clone --mirror` copies the key; `git fetch` and `wavedeck sessions fetch` do not.
"""

from __future__ import annotations

import secrets

from sessions.files import write_whole
from sessions.home import Home
from sessions.settings import AGENT, RunSettings

from .repository import Repository

KEY = "refs/wavedeck/key"
"""Ref of a blob with random bytes; the id of the blob is the key."""
OWN = "refs/wavedeck/own"


def own_ref(key: str, session: str) -> str:
    """Returns the ref that marks a session as made in the home of this key."""
    return f"{OWN}/{key}/{session}"


def home_key(home: Home, repository: Repository) -> str:
    """Returns the key of a home, which is taken from its store once; makes it if the store has none.

    The file counts from then on, so that a fetch of `refs/*` cannot replace the key.
    """
    try:
        return home.store_key.read_text().strip()
    except FileNotFoundError:
        pass
    with repository.writing():
        key = repository.read_ref(KEY)
        if key is None:
            key = repository.write_files({"key": secrets.token_bytes(32)})["key"]
            repository.sync_added()
            repository.write_ref(KEY, key)
        write_whole(home.store_key, key.encode() + b"\n", mode=0o600)
    return key


def settings_acts(settings: RunSettings) -> list[str]:
    """Returns what an engine with these settings does on this machine, as verbs with their object.

    The values are quoted as Python does: a sender chose them, and may have put control characters in.
    """
    options = settings.options
    asks_model = settings.method != AGENT and not (options.rejudges or options.predictions)
    is_recorded = settings.model.startswith("recorded:")
    acts = {
        "run the command": options.agent_command or options.agent,
        "use the Python": settings.python,
        "connect to the cluster": settings.cluster,
        "ask, with your key, the model": settings.model if asks_model and not is_recorded else "",
        "read the file": options.start,
        "read the folder": options.corpus,
    }
    return [f"{verb} {value!r}" for verb, value in acts.items() if value] + [
        "judge its kernels in the sandbox"
    ]
