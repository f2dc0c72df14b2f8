"""Small proxy on loopback: tunnels (`CONNECT`), may require a password, and records the targets."""

from __future__ import annotations

import base64
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Running proxy."""

    def __init__(self, login: str) -> None:
        self.targets: list[str] = []
        """Targets of the opened tunnels, as `host:port`."""
        self.login = login
        """`user:password`; empty: no password is required."""
        self.tcp = socketserver.ThreadingTCPServer(
            ("127.0.0.1", 0), type("Bound", (Tunnel,), {"proxy": self})
        )
        self.tcp.daemon_threads = True

    def url(self, login: str = "") -> str:
        """Return the address for a proxy variable."""
        return f"http://{login + '@' if login else ''}127.0.0.1:{self.tcp.server_address[1]}"


class Tunnel(socketserver.StreamRequestHandler):
    """One connection."""

    proxy: Proxy

    def handle(self) -> None:
        line = self.rfile.readline().decode()
        headers = {}
        while (header := self.rfile.readline().decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        expected_login = f"Basic {base64.b64encode(self.proxy.login.encode()).decode()}"
        if self.proxy.login and headers.get("proxy-authorization") != expected_login:
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            return
        target = line.split()[1]
        self.proxy.targets.append(target)
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as upstream:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pour, args=(upstream, self.connection))
            back.start()
            pour(self.connection, upstream)
            back.join()


def pour(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes from `source` to `sink` until one side closes."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def proxy(login: str = "") -> Iterator[Proxy]:
    """Run a proxy for the block."""
    running = Proxy(login)
    thread = threading.Thread(target=running.tcp.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        running.tcp.shutdown()
        thread.join()
        running.tcp.server_close()
