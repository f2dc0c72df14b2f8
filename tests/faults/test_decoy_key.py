"""A planted key is never seen by a guest or a compiling worker that looks for it in every way known, static checks aside."""

from __future__ import annotations

import os

import pytest

from tests.faults.machines import PERSON, Machine, machine
from tests.support.gpu import DEVICE, needs_gpu

pytestmark = [pytest.mark.judge, pytest.mark.timeout(300)]

WAYS = 31
SEEN_PLAINLY = {
    "environment", "planted_files", "planted_files_by_descriptor", "planted_files_by_links", "folders",
    "open_descriptors", "own_memory", "every_environment", "every_command_line", "programs", "programs_by_spawn",
    "children", "threads", "modes_changed",
}  # fmt: skip
"""Ways in which a process that is not sandboxed sees the key, as any user: else the hunt would prove nothing."""
SEEN_BY_ROOT = {"memory_files", "process_vm_readv", "ptrace", "stolen_descriptors", "raw_devices"}


def check(found: Machine, plainly: set[str]) -> None:
    assert found.verdicts == ["correct", "wrong"]
    assert plainly <= found.seen["control"].keys()
    for role in ("guest", "compiler"):
        assert len(set(found.tried[role])) >= WAYS
        assert found.seen[role] == {}, role


async def test_the_key_is_not_seen() -> None:
    found = await machine(hunt=True)
    if found.layers["read-allow-list"][0] != "active":
        pytest.skip("this kernel has no Landlock")
    check(found, SEEN_PLAINLY | (SEEN_BY_ROOT if os.geteuid() == 0 else set()))


async def test_the_key_is_not_seen_where_an_ordinary_user_judges() -> None:
    found = await machine(hunt=True, uid=PERSON)
    if found.layers["read-allow-list"][0] != "active":
        pytest.skip("this kernel has no Landlock")
    assert found.states("user", "other-processes", "network") == ["absent", "active", "active"]
    check(found, SEEN_PLAINLY)


@pytest.mark.gpu
@needs_gpu
async def test_the_key_is_not_seen_from_a_guest_on_a_gpu() -> None:
    found = await machine(hunt=True, device=DEVICE)
    if found.layers["read-allow-list"][0] != "active":
        pytest.skip("this kernel has no Landlock")
    check(found, SEEN_PLAINLY)


async def test_the_key_is_not_seen_in_a_container_without_namespaces_or_filters() -> None:
    found = await machine(hunt=True, refuse={"unshare": "EPERM", "seccomp": "EINVAL"})
    if found.layers["read-allow-list"][0] != "active":
        pytest.skip("this kernel has no Landlock")
    assert found.states("system-calls", "network") == ["absent", "absent"]
    # Loopback is the host's then, and a service of a person's own that hands out keys there is not ours to hold.
    for role in ("guest", "compiler"):
        assert found.seen[role].keys() <= {"sockets"}, role
