"""Folders of the built-in suites, the suites and clones that users added, and their licences.

A registry is a file `suites.toml` in the user's Wavedeck home: a line for a suite of task folders, a table for a clone of a
public benchmark.

    [suites]
    attention = "/home/me/kernels/attention"

    [clones.rocm]
    kind = "rocm"
    folder = "/home/me/GEAK-eval"

The folder `own` beside the file is a suite too: tasks of kernels that were run or judged as files.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import msgspec

from suites.errors import BadSuite, UnknownSuite
from suites.folder import TASK_FILE
from suites.privacy import make_private_folder
from suites.public.clone import Clone, choose_kind, kinds_of
from suites.public.task import SuiteKind
from suites.task_rules import NAME

_HERE = Path(__file__).parent
BUILT_IN = {"starter": _HERE / "starter", "wavedeck-bench": _HERE / "bench"}
OWN = "own"
"""Suite of the tasks that `run FILE` and `eval FILE` make."""
_RESERVED = {*BUILT_IN, OWN}
OWN_LICENCE = "Apache-2.0"
"""Licence of Wavedeck and its built-in suites."""
RESTRICTS_TRAINING = frozenset({"LicenseRef-Researcher-Reciprocity"})
"""Licences that allow training on a suite's texts under conditions on the trained model alone."""
LICENCE_TEXTS = (
    ("LicenseRef-Researcher-Reciprocity", ("Researcher Reciprocity License",)),
    ("Apache-2.0", ("Apache License", "Version 2.0")),
    ("MIT", ("Permission is hereby granted, free of charge", "without restriction")),
    ("BSD-3-Clause", ("Redistribution and use in source and binary forms", "Neither the name")),
    ("BSD-2-Clause", ("Redistribution and use in source and binary forms",)),
)
"""SPDX names, each with words that only its text has; an earlier licence wins."""
LICENCE_FILES = ("LICENSE*", "LICENCE*", "COPYING*")


class _Clone(msgspec.Struct, forbid_unknown_fields=True):
    kind: SuiteKind
    folder: str


class _Registry(msgspec.Struct, forbid_unknown_fields=True):
    suites: dict[str, str] = {}
    clones: dict[str, _Clone] = {}

    @property
    def folders(self) -> dict[str, Path]:
        """Folder of every suite and clone, by name."""
        clones = {name: Path(clone.folder) for name, clone in self.clones.items()}
        return {name: Path(folder) for name, folder in self.suites.items()} | clones


def suite_folders(registry: Path | None) -> dict[str, Path]:
    """Return the folder of every suite by name, built-in suites first. `registry` may be `None` or a missing file."""
    if registry is None:
        return dict(BUILT_IN)
    own = own_folder(registry)
    added = {name: Path(folder) for name, folder in _added(registry).suites.items()}
    return BUILT_IN | added | ({OWN: own} if own.is_dir() else {})


def own_folder(registry: Path) -> Path:
    """Return the folder of the suite `OWN`, which may not exist; `registry` is the home's `suites.toml`."""
    return registry.parent / OWN


def clones_of(registry: Path | None) -> tuple[Clone, ...]:
    """Return the clones of public benchmarks, in the order of the registry."""
    added = _added(registry).clones if registry is not None else {}
    return tuple(Clone(name, clone.kind, Path(clone.folder)) for name, clone in added.items())


def suite_folder(name: str, registry: Path | None) -> Path:
    """Return the folder of a suite of task folders.

    Raises `UnknownSuite`, or `BadSuite` if the folder does not exist or the suite is a clone of a public benchmark.
    """
    folders = suite_folders(registry)
    clones = {clone.name: clone for clone in clones_of(registry)}
    if name in clones:
        raise BadSuite(
            f"suite {name!r} is a clone of {clones[name].kind}: its tasks are judged by name, as `eval --task SUITE/TASK`"
        )
    if name not in folders:
        raise UnknownSuite(name, known=folders)
    if not folders[name].is_dir():
        raise BadSuite(
            f"suite {name!r}: the folder {folders[name]} is gone; restore it, or remove the suite with: wavedeck suites remove {name}"
        )
    return folders[name]


def task_names(folder: Path) -> tuple[str, ...]:
    """Return the sorted names of the folders with a `task.toml`."""
    return tuple(sorted(file.parent.name for file in folder.glob(f"*/{TASK_FILE}")))


def add_suite(name: str, path: Path, registry: Path, *, kind: SuiteKind | None = None) -> Clone | None:
    """Add a folder as the suite `name` to the file `registry`, which is created if it is missing. If the folder of this name
    is gone, the new folder replaces it.

    The folder holds task folders, or it is a clone of a public benchmark: its files decide, or `kind`. Returns the clone, or
    `None` for task folders. Adding the same folder again changes nothing. Raises `BadSuite` if the name is taken or invalid, or
    if the folder holds no task. The tasks themselves are not checked; see `check_suite`.
    """
    folder = path.expanduser().resolve()
    if not NAME.fullmatch(name):
        raise BadSuite(
            f"{name!r} is no name for a suite: use lower-case letters, digits, `_` and `-`, and begin with a letter"
        )
    if name in _RESERVED:
        raise BadSuite(f"{name!r} is built in; choose another name")
    if not folder.is_dir():
        raise BadSuite(f"{folder} is no folder; give the folder of the task folders, or a clone")
    is_clone = kind is not None or (bool(kinds_of(folder)) and not task_names(folder))
    if not is_clone and not task_names(folder):
        raise BadSuite(
            f"{folder} holds no task: no folder in it has a {TASK_FILE}, and it is no clone of a public benchmark"
        )
    clone = Clone(name, choose_kind(name, folder, kind), folder) if is_clone else None
    added = _added(registry)
    before = added.clones.get(name)
    registered = added.folders.get(name, folder)
    is_other_kind = name in added.folders and (before and before.kind) != (clone and clone.kind)
    if is_other_kind or (registered != folder and registered.is_dir()):
        raise BadSuite(
            f"suite {name!r} is already {before.kind if before else 'the folder'} {added.folders[name]}; "
            f"choose another name, or remove that one first with: wavedeck suites remove {name}"
        )
    if clone is None:
        added.suites[name] = str(folder)
    else:
        added.clones[name] = _Clone(clone.kind, str(folder))
    _write(registry, added)
    return clone


def added_folder(name: str, registry: Path) -> Path:
    """Return the folder of an added suite or clone. Raises `BadSuite` for a suite that was not added, or `UnknownSuite`."""
    if name in BUILT_IN:
        raise BadSuite(f"{name!r} comes with Wavedeck and cannot be removed")
    if name == OWN:
        raise BadSuite(
            f"{name!r} holds the tasks of your kernel files; delete their folders in {own_folder(registry)}"
        )
    folders = _added(registry).folders
    if name not in folders:
        raise UnknownSuite(name, known=folders)
    return folders[name]


def remove_suite(name: str, registry: Path) -> None:
    """Remove an added suite or clone from the file `registry`; its folder stays. Raises as `added_folder`."""
    added_folder(name, registry)
    added = _added(registry)
    added.suites.pop(name, None)
    added.clones.pop(name, None)
    _write(registry, added)


def _added(registry: Path) -> _Registry:
    """Return the suites and clones that users added; none without the file. Raises `BadSuite` with the remedy."""
    try:
        text = registry.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _Registry()
    except UnicodeDecodeError as error:
        raise BadSuite(f"{registry} is not UTF-8 text; fix or remove it") from error
    except OSError as error:
        why = error.strerror or error
        raise BadSuite(
            f"{registry} cannot be read ({why}); set WAVEDECK_HOME to a folder of yours"
        ) from error
    try:
        decoded = msgspec.toml.decode(text, type=_Registry)
    except msgspec.DecodeError as error:
        raise BadSuite(f"{registry} is not valid: {error}; fix or remove it") from error
    for name in (*decoded.suites, *decoded.clones):
        if name in _RESERVED or not NAME.fullmatch(name):
            raise BadSuite(f"{registry}: {name!r} cannot be the name of an added suite; rename it there")
    for name in decoded.suites.keys() & decoded.clones.keys():
        raise BadSuite(f"{registry}: {name!r} is the name of a suite and of a clone; rename one")
    return decoded


def _write(registry: Path, added: _Registry) -> None:
    """Replace the registry in one step: a reader never sees half a file. If two processes write, the later write wins."""
    lines = ["[suites]", *(f"{name} = {_quoted(folder)}" for name, folder in sorted(added.suites.items()))]
    for name, clone in sorted(added.clones.items()):
        lines += ["", f"[clones.{name}]", f'kind = "{clone.kind}"', f"folder = {_quoted(clone.folder)}"]
    text = "\n".join(lines) + "\n"
    try:
        make_private_folder(registry.parent)
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


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, except that TOML has no lone surrogates and wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def suite_licences(registry: Path | None) -> dict[str, str]:
    """Return the SPDX name of each suite's licence; suites with an unknown licence are left out.

    A folder's licence file is in it, or in the root of its git repository.
    """
    folders = suite_folders(registry) | {clone.name: clone.folder for clone in clones_of(registry)}
    licences = {
        name: OWN_LICENCE if name in BUILT_IN else _licence(folder) for name, folder in folders.items()
    }
    return {name: licence for name, licence in licences.items() if licence}


def _licence(folder: Path) -> str:
    """Return the SPDX name of a folder's licence; empty if it has no licence file, or one with another text."""
    root = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
    for place in dict.fromkeys((folder, root)):
        for file in sorted(
            file for pattern in LICENCE_FILES for file in place.glob(pattern) if file.is_file()
        ):
            text = " ".join(file.read_text(encoding="utf-8", errors="replace").split())
            return next((name for name, words in LICENCE_TEXTS if all(word in text for word in words)), "")
    return ""
