"""The real guard closes the user's other processes to an agent: with and without Landlock, as root and as a user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import msgspec
import pytest

from engine.agent_programs.guard import Confinement
from harness.sandbox import landlock

PERSON = 12345
"""A user id without an account."""
GUARD = """
import encodings.ascii, errno, os, sys
from engine.agent_programs import guard
from harness.linux import syscalls
from harness.sandbox import seccomp
refused, user = sys.argv.pop(1).split(), int(sys.argv.pop(1))
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
if refused:
    seccomp.install(step for name in refused for step in seccomp.refuse(name, errno.EPERM))
if user != os.geteuid():
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
if refused and user and os.fork() == 0:
    guard.enter_user_namespace()
    os._exit(0)
if refused and user and os.wait()[1]:
    os._exit(77)
guard.main()
"""
"""The guard on a machine without some system calls, as another user who may not be able to read this Python."""
READ = """
for name in environ mem maps fd/0 task/$1/environ; do
    (exec < /proc/$1/$name) 2>/dev/null && echo "read $name"
done
grep CapEff /proc/self/status
"""


@pytest.fixture(params=["root", "a user"])
def user(request: pytest.FixtureRequest) -> int:
    if os.geteuid() != 0 and request.param == "root":
        pytest.skip("only root can act as root")
    return PERSON if os.geteuid() == 0 and request.param == "a user" else os.geteuid()


@pytest.fixture
def shell(user: int) -> Iterator[int]:
    """A process of the user with a key in its environment, which each program of the user can read; its id."""
    environ = {"OPENAI_API_KEY": "planted"}
    group = user if user == PERSON else os.getegid()
    with subprocess.Popen(["/bin/sleep", "60"], env=environ, user=user, group=group) as process:
        control = ["/bin/cat", f"/proc/{process.pid}/environ"]
        done = subprocess.run(control, user=user, group=group, capture_output=True, text=True)
        assert "planted" in done.stdout
        yield process.pid
        process.kill()


@pytest.mark.parametrize("refused", ["", "landlock_create_ruleset"])
def test_an_agent_reads_nothing_of_the_users_other_processes(user: int, shell: int, refused: str) -> None:
    if not refused and not landlock.version():
        pytest.skip("needs Landlock")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, user, -1)
        confinement = Confinement(engine=os.getpid(), folder=folder, write=(), hidden=(), shared=folder)
        words = (refused, str(user), msgspec.json.encode(confinement).decode())
        done = subprocess.run(
            [sys.executable, "-c", GUARD, *words, "/bin/sh", "-c", READ, "sh", str(shell)],
            capture_output=True,
            text=True,
        )
    if done.returncode == 77:
        pytest.skip("needs Landlock or user namespaces")
    assert done.stdout == "CapEff:\t0000000000000000\n", done.stderr
