"""Versions of installed packages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version(package: str) -> str:
    """Return the version of a package; empty if it is not installed, as Wavedeck itself in a checkout."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
