"""Whether a model's server takes connections."""

from __future__ import annotations

import socket

from engine.models.reaching import unreachable_because
from engine.models.spec import parse_model


def test_open_port_is_reachable_and_a_closed_one_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        model = parse_model(f"openai:m@http://127.0.0.1:{port}/v1")
        assert unreachable_because(model, {}) == ""
    assert f"127.0.0.1:{port} takes no connection" in unreachable_because(model, {})


def test_the_proxy_is_asked_unless_the_host_is_excepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        environ = {"HTTP_PROXY": f"127.0.0.1:{server.getsockname()[1]}"}
        with socket.create_server(("127.0.0.2", 0)) as closed:
            port = closed.getsockname()[1]
        model = parse_model(f"openai:m@http://127.0.0.2:{port}/v1")
        assert unreachable_because(model, environ) == ""
        direct = {**environ, "NO_PROXY": "127.0.0.2"}
        assert f"127.0.0.2:{port} takes no connection" in unreachable_because(model, direct)


def test_recordings_need_no_server() -> None:
    assert unreachable_because(parse_model("recorded:starter"), {}) == ""
