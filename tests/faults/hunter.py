"""Looks for a planted key as code in a process can; runs as a candidate does, and plainly as a control.

`PLACES` tells where the key was planted and never holds it. Prints `HUNT ` and the ways in which the key was seen, as JSON.
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
    held = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(held, 1 << 20)
    finally:
        os.close(held)


def open_files(pid):
    return b"".join(read(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd"))


def memory(pid, address):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(64)


def run(path):
    return subprocess.run(["/bin/cat", path], capture_output=True).stdout


def receive(port):
    with socket.create_connection(("127.0.0.1", port), timeout=3) as client:
        return client.recv(4096)


def looks():
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
for way, look in looks():
    try:
        if KEY.search(look()):
            seen.add(way)
    except OSError:
        continue
print("HUNT " + json.dumps(sorted(seen)), flush=True)
