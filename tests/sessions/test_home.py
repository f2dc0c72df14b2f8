"""Home folder: its location, locks that end with their process, and atomic writes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.engine_info import EngineInfo, boot_id, pid_namespace, read_engine_info, write_engine_info
from sessions.errors import HomeNotPrivate, HomeNotWritable
from sessions.files import FileLock, is_locked, write_whole
from sessions.home import Home, home_from
from sessions.home_access import readers_warning, require_private
from sessions.store.store import Store


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"WAVEDECK_HOME": "/a/b", "XDG_DATA_HOME": "/x"}, "/a/b"),
        ({"WAVEDECK_HOME": "~/w", "HOME": "/home/ada"}, "/home/ada/w"),
        ({"WAVEDECK_HOME": "", "XDG_DATA_HOME": "/x"}, "/x/wavedeck"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/home/ada"}, "/home/ada/.local/share/wavedeck"),
        ({"HOME": "/home/ada"}, "/home/ada/.local/share/wavedeck"),
        ({"WAVEDECK_HOME": "here"}, Path.cwd() / "here"),
    ],
)
def test_environment_sets_the_home(environ: dict[str, str], root: str | Path) -> None:
    assert home_from(environ) == Home(Path(root))


def test_home_whose_path_is_not_utf8_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / os.fsdecode(b"home\xff"))
    with pytest.raises(HomeNotWritable, match="its path is not UTF-8"):
        home.ensure()
    assert not home.root.exists()


def test_write_whole_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "engine.json"
    write_whole(path, b"old", mode=0o600)

    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="Input/output"):
            write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.glob("*engine*")) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


HOLD = "import sys; from pathlib import Path; from sessions.files import FileLock; lock = FileLock(Path(sys.argv[1])); print(lock.acquire(), flush=True); sys.stdin.read()"


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "True\n"
        assert is_locked(path)
        assert is_locked(path)
        assert not FileLock(path).acquire()
        holder.kill()
    assert not is_locked(path)
    lock = FileLock(path)
    assert lock.acquire()
    assert lock.held
    lock.release()
    lock.release()
    assert not is_locked(path)


def test_lock_on_a_replaced_file_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = FileLock(path)
    assert first.acquire()
    path.unlink()
    second = FileLock(path)
    assert second.acquire()
    assert is_locked(path)


def test_engine_info_round_trips_and_unreadable_info_is_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    live = home.files("s")
    assert read_engine_info(live) is None
    live.folder.mkdir()
    info = EngineInfo(
        session="s", pid=1, process_started=2.0, boot_id=boot_id(), pid_namespace=pid_namespace(), host="h",
        socket="/s", token_file="/t",
    )  # fmt: skip
    write_engine_info(live, info)
    assert read_engine_info(live) == info
    live.engine.write_text("{")
    assert read_engine_info(live) is None


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_folders_of_a_new_home_are_private_with_any_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    home.ensure()
    home.ensure()
    Store.of(home).close()
    for folder in (home.root.parent, home.root, home.sessions, home.recordings, home.store):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    require_private(home)
    assert not readers_warning(home)


@pytest.mark.parametrize(("folder", "mode"), [(".", 0o770), (".", 0o702), ("store.git", 0o775)])
def test_home_that_others_can_write_is_refused(tmp_path: Path, folder: str, mode: int) -> None:
    home = Home(tmp_path / "home")
    home.ensure()
    home.root.chmod(0o755)
    (home.root / folder).mkdir(exist_ok=True)
    (home.root / folder).chmod(mode)
    with pytest.raises(HomeNotPrivate, match=rf"\(mode {mode:04o}\).*; run: chmod go-rwx {home.root}$"):
        require_private(home)
    home.root.chmod(0o700)
    require_private(home)


def test_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    owner = tmp_path.stat().st_uid
    if owner == 0:
        os.chown(tmp_path, owner := 4242, -1)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(HomeNotPrivate, match=r"belongs to .*; set WAVEDECK_HOME to a folder of your own"):
        require_private(home)
