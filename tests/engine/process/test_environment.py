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


def test_ordinary_login_is_no_risk(tmp_path: Path) -> None:
    root = machine(tmp_path, proc__self__cgroup="0::/user.slice/session-3.scope\n")
    assert risks(root, XDG_SESSION_ID="3") == []


def test_logind_that_kills_is_a_risk_until_the_user_lingers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_login_name", lambda: "ada")
    root = machine(
        tmp_path, **{"etc__systemd__logind.conf.d__10-site.conf": "[Login]\nKillUserProcesses=yes\n"}
    )
    [risk] = risks(root, XDG_SESSION_ID="3")
    assert "enable-linger" in risk
    linger = tmp_path / "var/lib/systemd/linger"
    linger.mkdir(parents=True)
    (linger / "ada").touch()
    assert risks(root, XDG_SESSION_ID="3") == []


def test_later_logind_file_overrides_earlier_files(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        **{
            "etc__systemd__logind.conf": "[Login]\nKillUserProcesses=yes\n",
            "etc__systemd__logind.conf.d__10-site.conf": "[Login]\nKillUserProcesses=no\n",
        },
    )
    assert risks(root, XDG_SESSION_ID="3") == []


def test_batch_job_is_named_by_its_id(tmp_path: Path) -> None:
    [risk] = risks(machine(tmp_path), SLURM_JOB_ID="4711")
    assert "Slurm job 4711" in risk


def test_batch_job_is_detected_by_its_cgroup(tmp_path: Path) -> None:
    [risk] = risks(machine(tmp_path, proc__self__cgroup="0::/system.slice/slurmstepd.scope/job_12/step_0\n"))
    assert "batch job" in risk


@pytest.mark.parametrize(("first", "count"), [("bash", 1), ("tini", 0)])
def test_container_without_an_init_process_is_a_risk(tmp_path: Path, first: str, count: int) -> None:
    root = machine(tmp_path, **{".dockerenv": "", "proc__1__comm": f"{first}\n"})
    assert len(risks(root)) == count


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
