"""Looks for a decoy key in every way that code in a process can look. Runs as a candidate does, and plainly as a control.

`PLACES` tells where the key was planted, as an attacker who has read the sources would know; it never holds the key.
Prints one line of JSON after `HUNT `: the ways in which the key was seen, and all ways that were tried.
"""

import ctypes
import gc
import json
import mmap
import os
import re
import socket
import struct
import subprocess
import sys
import threading

PLACES: dict = {}
KEY = re.compile(rb"sk-" + rb"decoy-[0-9a-f]{32}")
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = os.uname().machine == "x86_64"
seen: dict[str, str] = {}
tried: list[str] = []


def look(way, data):
    if isinstance(data, str):
        data = data.encode(errors="replace")
    found = KEY.search(data)
    if found:
        seen.setdefault(way, found.group()[-6:].decode())


def way(function):
    """Runs at once; whatever stops it is no find."""
    name = function.__name__
    tried.append(name)
    try:
        function(name)
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
    return function


def each(items, function):
    for item in items:
        try:
            function(item)
        except (OSError, ValueError, OverflowError):
            continue


def call(x86, arm, *arguments):
    result = libc.syscall(x86 if X86 else arm, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def read(path, limit=1 << 20):
    held = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe of a driver's would hold the hunt up
    try:
        return os.read(held, limit)
    finally:
        os.close(held)


def pids():
    numbers = set(PLACES["pids"])
    try:
        numbers |= {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        numbers |= set(range(1, 3000))
    return sorted(numbers - {os.getpid()})


@way
def environment(name):
    look(name, json.dumps(dict(os.environ)))
    block = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    for number in range(10_000):
        if block[number] is None:
            break
        look(name, block[number])
    look(name, read("/proc/self/environ"))


@way
def planted_files(name):
    each(PLACES["files"], lambda path: look(name, read(path)))


@way
def planted_files_by_descriptor(name):
    def reopen(path):
        held = os.open(path, os.O_PATH)
        look(name, read(f"/proc/self/fd/{held}"))

    each(PLACES["files"], reopen)


@way
def planted_files_by_other_roots(name):
    roots = [f"/proc/{pid}/root" for pid in PLACES["pids"]] + ["/proc/1/root", "/proc/self/root"]
    for root in roots:
        each(PLACES["files"], lambda path, root=root: look(name, read(root + path)))


@way
def planted_files_by_links(name):
    def link(path):
        for make in (os.link, os.symlink, os.rename):
            try:
                make(path, "linked")
                look(name, read("linked"))
            except OSError:
                continue
            finally:
                if os.path.lexists("linked"):
                    if make is os.rename:
                        os.rename("linked", path)
                    else:
                        os.unlink("linked")

    each(PLACES["files"], link)


@way
def planted_files_by_handle(name):
    def by_handle(path):
        handle = ctypes.create_string_buffer(struct.pack("I", 128) + bytes(132))
        mount = ctypes.c_int()
        call(303, 264, -100, path.encode(), handle, ctypes.byref(mount), 0)
        for folder in (".", "/", "/tmp"):
            opened = call(304, 265, os.open(folder, os.O_RDONLY), handle, os.O_RDONLY)
            look(name, os.read(opened, 4096))

    each(PLACES["files"], by_handle)


@way
def folders(name):
    budget = 3000
    for root in PLACES["folders"]:
        for folder, _below, names in os.walk(root):
            for one in names:
                each([os.path.join(folder, one)], lambda path: look(name, read(path, 1 << 16)))
                budget -= 1
                if budget == 0:
                    return


@way
def open_descriptors(name):
    def peek(number):
        if number > 2:
            look(name, os.pread(number, 1 << 16, 0))

    each(range(256), peek)
    each(range(256), lambda number: look(name, read(f"/proc/self/fd/{number}")) if number > 2 else None)


@way
def own_objects(name):
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            for value in list(thing.values()):
                if isinstance(value, (str, bytes, bytearray)):
                    look(name, value if isinstance(value, str) else bytes(value))


@way
def own_frames(name):
    for frame in [sys._getframe(), *sys._current_frames().values()]:
        while frame is not None:
            look(name, repr(frame.f_locals)[: 1 << 20])
            frame = frame.f_back


@way
def own_memory(name):
    with open("/proc/self/maps") as maps:
        regions = maps.read().splitlines()
    for region in regions:
        spans, modes, *rest = region.split(maxsplit=5)
        start, end = (int(part, 16) for part in spans.split("-"))
        backed = len(rest) == 4 and rest[3].startswith("/")
        if modes.startswith("rw") and not backed and end - start < 512 << 20:
            with open("/proc/self/mem", "rb", buffering=0) as memory:
                memory.seek(start)
                look(name, memory.read(end - start) or b"")


@way
def every_environment(name):
    each(pids(), lambda pid: look(name, read(f"/proc/{pid}/environ")))


@way
def every_command_line(name):
    each(pids(), lambda pid: look(name, read(f"/proc/{pid}/cmdline")))


@way
def every_open_file(name):
    def files(pid):
        for number in os.listdir(f"/proc/{pid}/fd"):
            each([f"/proc/{pid}/fd/{number}"], lambda path: look(name, read(path, 1 << 16)))

    each(PLACES["pids"], files)


@way
def memory_files(name):
    def memory(place):
        pid, address = place
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            file.seek(address)
            look(name, file.read(64))

    def other_memory(pid):
        with open(f"/proc/{pid}/mem", "rb", buffering=0):
            seen.setdefault(name, f"that of {pid} opens")

    each(PLACES["addresses"], memory)
    each(PLACES["pids"], other_memory)


@way
def process_vm_readv(name):
    def remote(place):
        pid, address = place
        buffer = ctypes.create_string_buffer(64)
        local = struct.pack("PN", ctypes.addressof(buffer), 64)
        call(310, 270, pid, local, 1, struct.pack("PN", address, 64), 1, 0)
        look(name, buffer.raw)

    each(PLACES["addresses"], remote)


@way
def ptrace(name):
    def trace(place):
        pid, address = place
        call(101, 117, 0x4206, pid, 0, 0)  # PTRACE_SEIZE, which stops nobody
        call(101, 117, 0x4207, pid, 0, 0)  # PTRACE_INTERRUPT
        os.waitpid(pid, 0x40000000)
        words = b""
        for step in range(0, 64, 8):
            word = ctypes.c_long()
            call(101, 117, 2, pid, ctypes.c_void_p(address + step), ctypes.byref(word))
            words += struct.pack("l", word.value)
        call(101, 117, 17, pid, 0, 0)
        look(name, words)

    each(PLACES["addresses"], trace)


@way
def stolen_descriptors(name):
    def steal(pid):
        held = call(434, 434, pid, 0)
        for number in range(64):
            each([number], lambda one: look(name, os.pread(call(438, 438, held, one, 0), 4096, 0)))

    each(PLACES["pids"], steal)


@way
def shared_memory(name):
    def attach(identifier):
        libc.shmat.restype = ctypes.c_void_p
        address = libc.shmat(identifier, None, 0o10000)
        if address not in (None, ctypes.c_void_p(-1).value):
            look(name, ctypes.string_at(address, 64))

    each(PLACES["shared_memory"], attach)


@way
def keyring(name):
    def payload(serial):
        buffer = ctypes.create_string_buffer(256)
        call(250, 219, 11, serial, buffer, 256)
        look(name, buffer.raw)

    each(PLACES["keys"], payload)
    each([call(249, 218, b"user", b"decoy", None, 0)], payload)


@way
def sockets(name):
    def ask(address):
        kind, where = address
        family = socket.AF_INET if kind == "tcp" else socket.AF_UNIX
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(3)
            client.connect(("127.0.0.1", where) if kind == "tcp" else where)
            look(name, client.recv(4096))

    each(PLACES["sockets"], ask)


@way
def programs(name):
    for path in PLACES["files"]:
        for command in (["/bin/cat", path], ["/bin/sh", "-c", f"cat {path}; env; ps auxe"]):
            each([command], lambda one: look(name, subprocess.run(one, capture_output=True).stdout))


@way
def programs_by_spawn(name):
    def spawn(path):
        with open("spawned", "wb") as out:
            actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
            os.waitpid(os.posix_spawn("/bin/cat", ["cat", path], {}, file_actions=actions), 0)
        look(name, read("spawned"))

    each(PLACES["files"], spawn)


@way
def children(name):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        for path in PLACES["files"]:
            each([path], lambda one: os.write(writer, read(one)))
        os._exit(0)
    os.close(writer)
    look(name, os.read(reader, 1 << 16))


@way
def threads(name):
    def work():
        each(PLACES["files"], lambda path: look(name, read(path)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@way
def mounts(name):
    call(272, 97, 0x10020000)
    for path in PLACES["files"]:
        os.makedirs("mounted", exist_ok=True)
        call(165, 40, os.path.dirname(path).encode(), b"mounted", None, 20480, None)
        look(name, read(os.path.join("mounted", os.path.basename(path))))


@way
def namespaces_of_others(name):
    each(PLACES["pids"], lambda pid: call(308, 268, os.open(f"/proc/{pid}/ns/user", os.O_RDONLY), 0))
    each(PLACES["files"], lambda path: look(name, read(path)))


@way
def modes_changed(name):
    for path in PLACES["files"]:
        each([path], lambda one: (os.chmod(one, 0o666), seen.setdefault(name, "changed")))


@way
def raw_devices(name):
    for path in ["/dev/mem", "/dev/kmsg", "/proc/kcore", *PLACES["devices"]]:
        each([path], lambda one: (os.close(os.open(one, os.O_RDONLY)), seen.setdefault(name, one)))


@way
def kernel_settings(name):
    with open("/proc/sys/kernel/core_pattern", "r+") as file:
        seen.setdefault(name, file.read().strip()[:40])


@way
def anonymous_memory(name):
    with mmap.mmap(-1, 64 << 20) as fresh:
        look(name, fresh[:])


print("HUNT " + json.dumps({"seen": seen, "tried": tried}), flush=True)
