"""Results of `wavedeck doctor --verify-gpu` on this node: a file of the home for each run, which later sessions read.

A verification holds for one product and driver on one host. Only whole runs count: one that a person interrupted changes
nothing.
"""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import msgspec

from harness import Evaluation
from harness.wire.results.provenance import Provenance

from .files import write_whole
from .home import Home

SCHEMA = 1


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    description: str
    """The work of the check, in one line."""
    passed: bool | None
    """`None` if it did not run to its end."""
    words: str
    """The result, in one line."""
    seconds: float = 0.0
    figures: dict[str, float | str | None] = {}


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of one run on the GPUs of one product."""

    schema: int = SCHEMA
    host: str
    wavedeck: str
    kind: str
    """`cuda` or `hip`."""
    provenance: Provenance
    devices: tuple[str, ...]
    """The GPUs, in words."""
    begun: float
    """Seconds since the epoch, UTC."""
    whole: bool = False
    """True if every check ran to its end."""
    checks: tuple[CheckResult, ...] = ()
    graph_nodes: int | None = None
    """The largest graph with times to trust, in calls; 0 if there is none, `None` if this was not measured."""

    @property
    def verified(self) -> bool:
        """True if every check ran and passed."""
        return self.whole and all(check.passed for check in self.checks)

    @property
    def day(self) -> str:
        """The day of the run in UTC: `2026-11-26`."""
        return time.strftime("%Y-%m-%d", time.gmtime(self.begun))

    @property
    def outcome(self) -> str:
        """`verified on this node, 2026-11-26`, else why not."""
        if self.verified:
            return f"verified on this node, {self.day}"
        failed = [check.name for check in self.checks if check.passed is False]
        why = f"{', '.join(failed)} failed" if failed else "not all checks ran"
        return f"{unverified_words(self.kind)}: {why}, {self.day}"


class VerificationFile(Verification, frozen=True, kw_only=True):
    """A verification with all that was measured: the file that people send."""

    evaluations: dict[str, Evaluation] = {}
    """Each evaluation of a check, by `check/task` with a number or a GPU behind it."""


_DECODER: msgspec.json.Decoder[Verification] = msgspec.json.Decoder(Verification)


def unverified_words(kind: str) -> str:
    """Return how sessions name a GPU of this kind without a verification."""
    return "unverified on AMD" if kind == "hip" else "not verified on this node"


def verification_path(home: Home, verification: Verification) -> Path:
    """Return the file of a verification in the home."""
    provenance = verification.provenance
    second, part = divmod(verification.begun, 1)
    moment = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(second))}-{part * 1000:03.0f}"
    parts = (verification.host, provenance.product, provenance.driver, moment)
    name = "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts if part)
    return home.verifications / f"{name}.json"


def write_verification(path: Path, verification: VerificationFile) -> None:
    """Write the file whole. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(verification), indent=1) + b"\n")


def read_verifications(home: Home) -> list[Verification]:
    """Return the verifications of the home, oldest first. A file that cannot be read is left out."""
    verifications = []
    for path in home.verifications.glob("*.json"):
        try:
            verifications.append(_DECODER.decode(path.read_bytes()))
        except (OSError, msgspec.DecodeError):
            continue
    return sorted(verifications, key=lambda verification: verification.begun)


def newest_verification(home: Home, *, host: str, provenance: Provenance) -> Verification | None:
    """Return the newest whole verification of GPUs of this product and driver on this host; `None` without one."""
    verifications = _whole_runs(home, host, provenance)
    return verifications[-1] if verifications else None


def standing_of(verification: Verification | None, kind: str) -> str:
    """Return what sessions carry for verified and other GPUs of this kind: `verified on this node, 2026-11-26`."""
    return verification.outcome if verification is not None else unverified_words(kind)


def graph_nodes_of(home: Home, provenance: Provenance) -> int | None:
    """Return the newest `graph_nodes` for GPUs of this product and driver on this host; `None` if it was never measured."""
    runs = _whole_runs(home, socket.gethostname(), provenance)
    measured = [run.graph_nodes for run in runs if run.graph_nodes is not None]
    return measured[-1] if measured else None


def _whole_runs(home: Home, host: str, provenance: Provenance) -> list[Verification]:
    """The whole verifications of a product and driver on a host, oldest first."""
    wanted = host, provenance.product, provenance.driver
    return [
        verification
        for verification in read_verifications(home)
        for gpu in (verification.provenance,)
        if verification.whole and (verification.host, gpu.product, gpu.driver) == wanted
    ]
