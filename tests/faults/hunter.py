"""Looks for a planted API key with everything that code in a process can do.

Runs inside a candidate, and without a sandbox as a control. `PLACES` says where the key was planted, but does not contain it.
Prints `HUNT ` and a JSON list of the ways that found the key.
"""

import json
import os
import re
import socket
import subprocess
from functools import partial

PLACES: dict = {}
KEY = re.compile(rb"sk-" + rb"decoy-[0-9a-f]{32}")


def read(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(descriptor, 1 << 20)
    finally:
        os.close(descriptor)


def open_files(pid):
    return b"".join(read(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd"))


def memory(pid, address):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(64)


def run(path):
    return subprocess.run(["/bin/cat", path], capture_output=True).stdout


def receive(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        return client.recv(4096)


def attempts():
    yield "environment", lambda: repr(os.environ).encode() + read("/proc/self/environ")
    for path in PLACES["files"]:
        yield "files", partial(read, path)
        yield "programs", partial(run, path)
        yield "links", lambda path=path: (os.symlink(path, "linked"), read("linked"))[1]
    for pid in PLACES["pids"]:
        yield "processes", partial(read, f"/proc/{pid}/environ")
        yield "processes", partial(read, f"/proc/{pid}/cmdline")
        yield "open files", partial(open_files, pid)
        yield "memory", partial(memory, pid, PLACES["address"])
        for path in PLACES["files"]:
            yield "other roots", partial(read, f"/proc/{pid}/root{path}")
    yield "network", partial(receive, PLACES["port"])


seen = set()
for way, look in attempts():
    try:
        if KEY.search(look()):
            seen.add(way)
    except OSError:
        continue
print("HUNT " + json.dumps(sorted(seen)), flush=True)
