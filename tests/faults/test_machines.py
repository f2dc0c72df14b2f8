"""The judge on machines that lack a layer: it judges alike, and says what is missing and what stands in for it."""

from __future__ import annotations

import os

import pytest

from harness.sandbox import landlock
from tests.faults.machines import PERSON, machine
from tests.support.candidates import adding

pytestmark = [pytest.mark.judge, pytest.mark.timeout(300)]
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
"""Five hundred processes in five hundred sessions, where processes can be started: in the compiling worker at the latest."""


async def test_a_container_that_forbids_namespaces() -> None:
    """As Docker's own profile does: the filter keeps the network away, and the ordinary user is told what that means."""
    found = await machine(refuse={"unshare": "EPERM"}, uid=PERSON)
    assert found.verdicts == ["correct", "wrong"]
    assert found.layers["network"] == ("active", "sockets refused")
    assert found.layers["ipc"] == ("active", "shared memory and queues refused")
    assert found.states("user", "capabilities", "processes", "other-processes") == [
        "absent", "active", "active", "active",
    ]  # fmt: skip


async def test_a_kernel_without_landlock() -> None:
    found = await machine(refuse={"landlock_create_ruleset": "ENOSYS"}, uid=PERSON)
    assert found.verdicts == ["correct", "wrong"]
    state, why = found.layers["read-allow-list"]
    assert state == "absent"
    assert "may read" in why
    assert found.layers["signal-scope"] == ("active", "signals to any other process are refused")


async def test_a_machine_without_any_of_it_still_judges_and_says_so() -> None:
    refuse = {"unshare": "EPERM", "seccomp": "EINVAL", "landlock_create_ruleset": "EOPNOTSUPP"}
    found = await machine(refuse=refuse, uid=PERSON)
    assert found.verdicts == ["correct", "wrong"]
    missing = ("network", "ipc", "user", "read-allow-list", "signal-scope", "system-calls", "other-processes")
    assert found.states(*missing) == ["absent"] * len(missing)
    assert all(why for _state, why in found.layers.values())
    held = set(found.layers) - set(missing)
    assert {found.layers[name][0] for name in held} == {"active"}


@AS_ROOT
async def test_root_that_may_not_change_its_user_gives_up_what_root_may_do() -> None:
    found = await machine(refuse={"setresuid": "EPERM", "unshare": "EPERM"})
    assert found.verdicts == ["correct", "wrong"]
    assert found.layers["user"][0] == "absent"
    assert found.layers["capabilities"] == ("active", "none")
    if landlock.version():
        assert found.states("read-allow-list", "other-processes") == ["active", "active"]


@pytest.mark.parametrize("refuse", [{}, {"setresuid": "EPERM", "unshare": "EPERM"}])
async def test_a_fork_bomb_ends(refuse: dict[str, str]) -> None:
    """With the kernel's count of a user's tasks, and where that does not hold, by the warden's own."""
    found = await machine(refuse=refuse, sources=(BOMB, adding()))
    assert found.verdicts[1] == "correct"
    assert found.verdicts[0] == "compile_error"
    assert "more than 64 processes" in found.errors[0]


@pytest.mark.parametrize("uid", [None, PERSON])
async def test_a_guest_finds_no_key(uid: int | None) -> None:
    """Beside the static check; a process that is not sandboxed finds it, else the hunt would prove nothing."""
    found = await machine(hunt=True, uid=uid)
    if found.layers["read-allow-list"][0] != "active":
        pytest.skip("this kernel has no Landlock")
    assert found.verdicts == ["correct", "wrong"]
    assert found.seen["control"] >= {"environment", "files", "links", "network", "processes", "programs"}
    assert found.seen["guest"] == set()
