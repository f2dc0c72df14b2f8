"""Whether a model can be asked: its server takes connections, and knows key and model."""

from __future__ import annotations

import socket

import pytest

from engine.errors import EngineDidNotStart
from engine.models.reaching import check_answers, unreachable_because
from engine.models.spec import parse_model
from tests.support.engine.model_calls import WIRES, client_of
from tests.support.engine.model_server import Answer, Seen, hangs, model_server, refuses


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


async def ask_about(wire: str, about_model: Answer | None, empty_call: Answer) -> list[Seen]:
    """Ask a server with these answers about the model `test`; returns the calls that it got."""
    with model_server(empty_call, about_model=about_model) as server:
        client = client_of(wire, server)
        try:
            await check_answers([client, client])
        finally:
            await client.close()
    return server.requests


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (refuses(401, message="invalid key"), "401: invalid key; check the key in "),
        (Answer(status=401, raw=b'{"error": "Unauthorized"}'), "; check the key in "),
        (refuses(403, message="this key was revoked"), "403: this key was revoked; check the key in "),
        (refuses(404, message="the model `test` does not exist"), "check the model's name"),
    ],
)
async def test_refused_key_or_unknown_model_is_found_without_tokens(
    wire: str, answer: Answer, advice: str
) -> None:
    with pytest.raises(EngineDidNotStart) as caught:
        await ask_about(wire, answer, answer)
    assert advice in str(caught.value)
    assert "test" in str(caught.value).partition(" cannot be asked: ")[0]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "answer",
    [
        None,
        Answer(status=200, raw=b'{"id": "test"}'),
        refuses(401, message="this path takes other keys"),
        Answer(status=403, raw=b'{"message": "Missing Authentication Token"}'),
        Answer(status=404, raw=b"<html>not here</html>"),
        refuses(404, message="Invalid URL (GET /v1/models/test)"),
        refuses(500),
        refuses(429),
        hangs("", after=-1),
    ],
)
async def test_answer_that_proves_nothing_stops_nobody(
    wire: str, answer: Answer | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer is not None and answer.hang_after == -1:
        monkeypatch.setattr("engine.models.clients.sdk_client.CHECK_S", 0.2)
    calls = await ask_about(wire, answer, refuses(400, message="messages: field required"))
    refused = answer is not None and answer.status in (401, 403)
    assert [call.body for call in calls] == ([{"model": "test"}] if refused else [])
