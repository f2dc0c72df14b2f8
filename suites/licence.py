"""The licence of a suite, from the licence file of its folder."""

from __future__ import annotations

from pathlib import Path

from suites.registry import BUILT_IN, clones_of, suite_folders

OWN_LICENCE = "Apache-2.0"
"""Licence of Wavedeck and its built-in suites."""
TEXTS = (
    ("Apache-2.0", ("Apache License", "Version 2.0")),
    ("MIT", ("Permission is hereby granted, free of charge", "without restriction")),
    ("BSD-3-Clause", ("Redistribution and use in source and binary forms", "Neither the name")),
    ("BSD-2-Clause", ("Redistribution and use in source and binary forms",)),
)
"""SPDX names, each with words that only its text has; an earlier licence wins."""
FILES = ("LICENSE*", "LICENCE*", "COPYING*")


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
        for file in sorted(file for pattern in FILES for file in place.glob(pattern) if file.is_file()):
            text = " ".join(file.read_text(encoding="utf-8", errors="replace").split())
            return next((name for name, words in TEXTS if all(word in text for word in words)), "")
    return ""
