"""Protects judging on machines that lack a sandbox layer: verdicts are the same, and reports name the missing layer."""

from __future__ import annotations

import os

import pytest

from harness.sandbox import landlock
from tests.faults.machines import PERSON, machine
from tests.support.judge.candidates import adding

pytestmark = pytest.mark.judge
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")

BOMB = adding(
    before="""system = [torch][0].os
    try:
        for _ in range(9):
            try: child = system.fork()
            except BlockingIOError: break
            if child == 0: system.setsid()
        while system.getppid(): system.times()
    except PermissionError: pass"""
)
"""Forks 500 processes in 500 sessions where a process can fork: at the latest in the compiling worker."""


@pytest.mark.soak
async def test_container_without_namespaces_judges_with_refused_sockets() -> None:
    """Docker's default profile forbids namespaces; the system-call filter then refuses sockets."""
    result = await machine(refuse={"unshare": "EPERM"}, uid=PERSON)
    assert result.verdicts == ["correct", "wrong"]
    assert result.layers["network"] == ("active", "sockets refused")
    assert result.layers["ipc"] == ("active", "shared memory and queues refused")
    assert result.states("user", "capabilities", "processes", "other-processes") == [
        "absent", "active", "active", "active",
    ]  # fmt: skip


@pytest.mark.soak
async def test_kernel_without_landlock_judges_and_reports_it() -> None:
    result = await machine(refuse={"landlock_create_ruleset": "ENOSYS"}, uid=PERSON, sources=(adding(),))
    assert result.verdicts == ["correct"]
    state, why = result.layers["read-allow-list"]
    assert state == "absent"
    assert "may read" in why
    assert result.layers["signal-scope"] == ("active", "signals to any other process are refused")


@pytest.mark.soak
async def test_machine_without_any_layer_judges_and_reports_it() -> None:
    refuse = {"unshare": "EPERM", "seccomp": "EINVAL", "landlock_create_ruleset": "EOPNOTSUPP"}
    result = await machine(refuse=refuse, uid=PERSON)
    assert result.verdicts == ["correct", "wrong"]
    missing = ("network", "ipc", "user", "read-allow-list", "signal-scope", "system-calls", "other-processes")
    assert result.states(*missing) == ["absent"] * len(missing)
    assert all(why for _state, why in result.layers.values())
    present = set(result.layers) - set(missing)
    assert {result.layers[name][0] for name in present} == {"active"}


@pytest.mark.soak
@AS_ROOT
async def test_root_without_setresuid_drops_its_capabilities() -> None:
    result = await machine(refuse={"setresuid": "EPERM", "unshare": "EPERM"})
    assert result.verdicts == ["correct", "wrong"]
    assert result.layers["user"][0] == "absent"
    assert result.layers["capabilities"] == ("active", "none")
    if landlock.version():
        assert result.states("read-allow-list", "other-processes") == ["active", "active"]


@pytest.mark.soak
@pytest.mark.parametrize("refuse", [{}, {"setresuid": "EPERM", "unshare": "EPERM"}])
async def test_fork_bomb_is_ended(refuse: dict[str, str]) -> None:
    """The kernel's limit of a user's processes ends it; without that limit, the warden's count does."""
    result = await machine(refuse=refuse, sources=(BOMB, adding()))
    assert result.verdicts[1] == "correct"
    assert result.verdicts[0] == "compile_error"
    assert "more than 64 processes" in result.errors[0]


@pytest.mark.parametrize("uid", [None, pytest.param(PERSON, marks=pytest.mark.soak)])
async def test_guest_finds_no_key(uid: int | None) -> None:
    """The hunt runs without the static check. A process without a sandbox finds the key, which proves that the hunt works."""
    result = await machine(hunt=True, uid=uid, sources=(adding(),))
    if result.layers["read-allow-list"][0] != "active":
        pytest.skip("this kernel has no Landlock")
    assert result.verdicts == ["correct"]
    assert result.seen["control"] >= {"environment", "files", "links", "network", "processes", "programs"}
    assert result.seen["guest"] == set()
