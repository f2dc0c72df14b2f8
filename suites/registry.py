"""Folders of the built-in suites and of the suites that users added.

A registry is a file `suites.toml` in the user's Wavedeck home, with one line per suite:

    [suites]
    attention = "/home/me/kernels/attention"
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from pathlib import Path

import msgspec

from suites.errors import BadSuite, UnknownSuite
from suites.folder import TASK_FILE
from suites.task_rules import NAME

_HERE = Path(__file__).parent
BUILT_IN = {"starter": _HERE / "starter", "wavedeck-bench": _HERE / "bench"}


class _Registry(msgspec.Struct, forbid_unknown_fields=True):
    suites: dict[str, str] = {}


def suite_folders(registry: Path | None) -> dict[str, Path]:
    """Return the folder of every suite by name, built-in suites first. `registry` may be `None` or a missing file."""
    return BUILT_IN | (_added(registry) if registry is not None else {})


def suite_folder(name: str, registry: Path | None) -> Path:
    """Return the folder of a suite. Raises `UnknownSuite`, or `BadSuite` if the folder does not exist."""
    folders = suite_folders(registry)
    if name not in folders:
        raise UnknownSuite(name, known=folders)
    if not folders[name].is_dir():
        raise BadSuite(
            f"suite {name!r}: the folder {folders[name]} is gone; restore it or remove its line from {registry}"
        )
    return folders[name]


def task_names(folder: Path) -> tuple[str, ...]:
    """Return the sorted names of the folders with a `task.toml`."""
    return tuple(sorted(file.parent.name for file in folder.glob(f"*/{TASK_FILE}")))


def add_suite(name: str, path: Path, registry: Path) -> None:
    """Add a folder of task folders as the suite `name` to the file `registry`, which is created if it is missing.

    Adding the same folder again changes nothing. Raises `BadSuite` if the name is taken or invalid, or if the folder holds no
    task. The tasks themselves are not checked; see `check_suite`.
    """
    folder = path.expanduser().resolve()
    if not NAME.fullmatch(name):
        raise BadSuite(
            f"{name!r} is no name for a suite: use lower-case letters, digits, `_` and `-`, and begin with a letter"
        )
    if name in BUILT_IN:
        raise BadSuite(f"{name!r} is built in; choose another name")
    if not folder.is_dir():
        raise BadSuite(f"{folder} is no folder; give the folder that holds the task folders")
    if not task_names(folder):
        raise BadSuite(f"{folder} holds no task: no folder in it has a {TASK_FILE}")
    added = _added(registry)
    if added.get(name, folder) != folder:
        raise BadSuite(
            f"suite {name!r} is already {added[name]}; choose another name or change its line in {registry}"
        )
    _write(registry, added | {name: folder})


def _added(registry: Path) -> dict[str, Path]:
    try:
        text = registry.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadSuite(f"{registry} cannot be read: {error}") from error
    try:
        decoded = msgspec.convert(tomllib.loads(text), _Registry, strict=True)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadSuite(f"{registry} is not valid: {error}; fix or remove it") from error
    for name in decoded.suites:
        if name in BUILT_IN or not NAME.fullmatch(name):
            raise BadSuite(f"{registry}: {name!r} cannot be the name of an added suite; rename it there")
    return {name: Path(folder) for name, folder in decoded.suites.items()}


def _write(registry: Path, suites: dict[str, Path]) -> None:
    """Replace the registry in one step: a reader never sees half a file. If two processes write, the later write wins."""
    # A JSON string is a TOML basic string, except that TOML has no lone surrogates and wants DEL escaped.
    lines = [
        f"{name} = {json.dumps(str(folder), ensure_ascii=False)}" for name, folder in sorted(suites.items())
    ]
    text = "[suites]\n" + "\n".join(lines).replace("\x7f", "\\u007f") + "\n"
    try:
        registry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=registry.parent, prefix=".suites-", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(registry)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except UnicodeEncodeError:
        raise BadSuite(
            "the folder's path is not UTF-8, which a TOML file cannot hold; move or link it"
        ) from None
    except OSError as error:
        raise BadSuite(f"{registry} cannot be written: {error}") from error
