"""Risks for a detached engine: batch jobs, containers, logind and file systems, read from sample file trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.process import environment
from engine.process.environment import detach_risks, home_risk, mount_of

LOCAL = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"


def machine(root: Path, **files: str) -> Path:
    """Write these files below `root`; `__` in a name is a slash."""
    for name, text in {"proc__self__mountinfo": LOCAL, **files}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def risks(root: Path, **environ: str) -> list[str]:
    return detach_risks(root / "home", environ=environ, root=root)


LOGIND = "etc__systemd__logind.conf"
KILLS = {LOGIND: "[Login]\nKillUserProcesses=yes\n"}


@pytest.mark.parametrize(
    ("files", "environ", "words"),
    [
        ({"proc__self__cgroup": "0::/user.slice/session-3.scope\n"}, {"XDG_SESSION_ID": "3"}, []),
        (
            {**KILLS, f"{LOGIND}.d__10-site.conf": "[Login]\nKillUserProcesses=no\n"},
            {"XDG_SESSION_ID": "3"}, [],
        ),
        ({}, {"SLURM_JOB_ID": "4711"}, ["Slurm job 4711"]),
        ({"proc__self__cgroup": "0::/system.slice/slurmstepd.scope/job_12/step_0\n"}, {}, ["batch job"]),
        ({".dockerenv": "", "proc__1__comm": "bash\n"}, {}, ["container"]),
        ({".dockerenv": "", "proc__1__comm": "tini\n"}, {}, []),
    ],
)  # fmt: skip
def test_batch_jobs_and_containers_are_risks_and_logins_are_none(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], words: list[str]
) -> None:
    named = risks(machine(tmp_path, **files), **environ)
    assert [word in risk for word, risk in zip(words, named, strict=True)] == [True] * len(words)


def test_logind_that_kills_is_a_risk_until_the_user_lingers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_login_name", lambda: "ada")
    root = machine(tmp_path, **KILLS)
    [risk] = risks(root, XDG_SESSION_ID="3")
    assert "enable-linger" in risk
    linger = tmp_path / "var/lib/systemd/linger"
    linger.mkdir(parents=True)
    (linger / "ada").touch()
    assert risks(root, XDG_SESSION_ID="3") == []


@pytest.mark.parametrize(
    ("filesystem", "word"),
    [("tmpfs", "reboot"), ("overlay", "container"), ("nfs4", "network"), ("xfs", None)],
)
def test_file_system_of_the_home_can_be_a_risk(tmp_path: Path, filesystem: str, word: str | None) -> None:
    mounts = f"{LOCAL}30 22 0:44 / {tmp_path}/my\\040folder rw - {filesystem} source rw\n"
    risk = home_risk(
        tmp_path / "my folder" / "wavedeck", root=machine(tmp_path, proc__self__mountinfo=mounts)
    )
    assert (word in risk) if word and risk else (risk is None and word is None)


def test_mount_of_a_path_is_the_nearest_mount(tmp_path: Path) -> None:
    mounts = f"{LOCAL}30 22 0:44 / {tmp_path} rw - nfs4 a rw\n31 30 0:45 / {tmp_path}/person rw - ext4 b rw\n"
    mount = mount_of(tmp_path / "person" / "x", root=machine(tmp_path, proc__self__mountinfo=mounts))
    assert mount.filesystem == "ext4"


def test_machine_without_information_has_no_risks(tmp_path: Path) -> None:
    assert detach_risks(tmp_path / "home", environ={}, root=tmp_path) == []
