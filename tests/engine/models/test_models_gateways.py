"""Models behind gateways, with the real SDKs on loopback: headers, Azure, Gemini, private certificates, proxies."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trustme

from engine.errors import ModelError, UsageProblem, UselessToRetry
from engine.models import Client, ModelSpec, open_client
from engine.models.access import PROVIDERS, PROXIES, access, extra_headers
from engine.models.client import Reply
from tests.support.engine.model_calls import BRISK, ignore, request
from tests.support.engine.model_server import Answer, ModelServer, model_server, refuses, says

WIRES = ("anthropic", "openai")
HEADERS = "X-Team: kernels\nX-Gateway-Token: token-0123456789"
NOWHERE = Path("none")


@asynccontextmanager
async def proxy(login: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Run a proxy that asks for `user:password`; gives its address and the targets of its tunnels."""
    targets: list[str] = []
    expected = f"Basic {base64.b64encode(login.encode()).decode()}"

    async def pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if expected not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            writer.close()
            return
        targets.append(head.split()[1])
        host, _, port = targets[-1].rpartition(":")
        upstream, sink = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pour(reader, sink), pour(upstream, writer))

    async with await asyncio.start_server(tunnel, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", targets


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the machine's proxy and certificate settings."""
    for name in (*PROXIES, "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def opened(model: str, environ: dict[str, str]) -> Client:
    return open_client(model, environ=environ, home_recordings=NOWHERE, limits=BRISK)


def at(wire: str, server: ModelServer) -> str:
    return f"{wire}:test@{server.anthropic_url if wire == 'anthropic' else server.openai_url}"


async def reply_once(model: str, environ: dict[str, str]) -> Reply:
    """Return one reply from a new client."""
    client = opened(model, environ)
    try:
        return await client.reply(request(), ignore)
    finally:
        await client.close()


async def fails(model: str, environ: dict[str, str]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_once(model, environ)
    return caught.value


@contextmanager
def private(*script: Answer) -> Iterator[tuple[ModelServer, trustme.CA]]:
    """Run a model server with a certificate of a temporary authority."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with model_server(*script, tls=tls) as server:
        yield server, authority


@pytest.mark.parametrize("wire", WIRES)
async def test_gateway_headers_are_sent_and_never_appear_in_messages(wire: str) -> None:
    echo = "who is token-0123456789?"
    with model_server(says("yes"), refuses(403, message=echo)) as server:
        environ = {"WAVEDECK_MODEL_HEADERS": HEADERS, "WAVEDECK_MODEL_KEY": "wd-key-123"}
        await reply_once(at(wire, server), environ)
        refused = await fails(at(wire, server), environ)
    for seen in server.requests:
        assert (seen.headers["x-team"], seen.headers["x-gateway-token"]) == ("kernels", "token-0123456789")
    assert "token-0123456789" not in refused.message
    assert "who is [key]?" in refused.message


@pytest.mark.parametrize("model", ["anthropic:x", "openai:x", "gemini:x"])
def test_provider_address_gets_no_gateway_headers(model: str) -> None:
    provider, _, name = model.partition(":")
    environ = {PROVIDERS[provider].key_variable: "k", "WAVEDECK_MODEL_HEADERS": HEADERS}
    reached = access(ModelSpec(provider, name), environ)
    assert reached.headers == ()
    assert reached.url == PROVIDERS[provider].url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X-Team kernels-secret", "line 1 of WAVEDECK_MODEL_HEADERS is not a header"),
        ("\nX Team: secret", "line 2 of WAVEDECK_MODEL_HEADERS is not a header"),
        ("X-Team:", "the value of X-Team is empty"),
        ("X-Team: sécret", "contains a character that no header can carry"),
        ("X-Team: secret\nx-team: secret", "line 2 of WAVEDECK_MODEL_HEADERS: x-team appears twice"),
        ("Content-Length: 3", "Content-Length is set by the protocol"),
    ],
)
def test_wrong_header_error_hides_its_value(text: str, message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        extra_headers({"WAVEDECK_MODEL_HEADERS": text})
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "sécret" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "header", "value"),
    [
        ("AZURE_OPENAI_API_KEY", "api-key", "azure-key-1"),
        ("AZURE_OPENAI_AD_TOKEN", "authorization", "Bearer azure-key-1"),
    ],
)
async def test_azure_deployment_gets_its_route_key_and_version(key: str, header: str, value: str) -> None:
    with model_server(says("from azure")) as server:
        environ = {
            "AZURE_OPENAI_ENDPOINT": server.anthropic_url,
            "OPENAI_API_VERSION": "2024-10-21",
            "WAVEDECK_MODEL_HEADERS": HEADERS,
            key: "azure-key-1",
        }
        reply = await reply_once("azure:my-gpt", environ)
    [seen] = server.requests
    assert reply.text == "from azure"
    assert seen.route == "/openai/deployments/my-gpt/chat/completions"
    assert seen.query == "api-version=2024-10-21"
    assert seen.headers[header] == value
    assert seen.headers["x-team"] == "kernels"
    assert seen.body["max_completion_tokens"] == 32_000
    assert "max_tokens" not in seen.body


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("AZURE_OPENAI_ENDPOINT", "needs AZURE_OPENAI_ENDPOINT, as https://"),
        ("OPENAI_API_VERSION", "needs OPENAI_API_VERSION, as 2024"),
        ("AZURE_OPENAI_API_KEY", "set AZURE_OPENAI_API_KEY, or a token in AZURE_OPENAI_AD_TOKEN"),
    ],
)
def test_missing_azure_setting_is_named(missing: str, message: str) -> None:
    environ = {
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
        "OPENAI_API_VERSION": "2024-10-21",
        "AZURE_OPENAI_API_KEY": "k",
    }
    assert access(ModelSpec("azure", "x"), environ).version == "2024-10-21"
    del environ[missing]
    with pytest.raises(UsageProblem) as caught:
        access(ModelSpec("azure", "x"), environ)
    assert message in str(caught.value)


async def test_gemini_uses_its_openai_endpoint_and_counts_thought_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert PROVIDERS["gemini"].url == "https://generativelanguage.googleapis.com/v1beta/openai/"
    with model_server(says("hi", input_tokens=100, output_tokens=10, thought_tokens=70)) as server:
        monkeypatch.setitem(PROVIDERS, "gemini", PROVIDERS["gemini"]._replace(url=server.openai_url))
        reply = await reply_once("gemini:pro", {"GEMINI_API_KEY": "gem-key-1", "OPENAI_API_KEY": "sk-other"})
    [seen] = server.requests
    assert seen.headers["authorization"] == "Bearer gem-key-1"
    assert "sk-other" not in repr(seen.headers)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 80)


@pytest.mark.parametrize("wire", WIRES)
async def test_private_authority_is_trusted_if_ssl_cert_file_names_it(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private(says("over TLS")) as (server, authority):
        stranger = await fails(at(wire, server), {})
        assert (type(stranger), stranger.reason) == (UselessToRetry, "bad_certificate")
        assert "set SSL_CERT_FILE to your authority's certificates" in stranger.message
        assert server.requests == []
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert (await reply_once(at(wire, server), {})).text == "over TLS"


@pytest.mark.parametrize("content", [None, "no certificate at all"])
def test_unusable_certificate_file_is_named(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "authority.pem"
    if content:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(UsageProblem, match="SSL_CERT_FILE cannot be used"):
        opened("openai:test@https://127.0.0.1:1/v1", {})


@pytest.mark.parametrize("wire", WIRES)
async def test_proxy_is_used_unless_no_proxy_excludes_the_host(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = says("tunnelled"), says("direct")
    async with proxy("me:pass-word-1") as (address, targets):
        with private(*script) as (server, authority):
            authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass-word-1@{address}")
            assert (await reply_once(at(wire, server), {})).text == "tunnelled"
            assert targets == [f"127.0.0.1:{server.port}"]
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            assert (await reply_once(at(wire, server), {})).text == "direct"
            assert len(targets) == 1


async def test_proxy_refusal_hides_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxy("me:right") as (address, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass-word-2@{address}")
        refused = await fails("openai:test@https://127.0.0.1:1/v1", {})
    assert (type(refused), refused.reason) == (UselessToRetry, "proxy_refused")
    assert "check HTTPS_PROXY and NO_PROXY" in refused.message
    assert "pass-word-2" not in refused.message


def test_invalid_proxy_error_hides_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://me:pass-word-3@proxy")
    with pytest.raises(UsageProblem) as caught:
        opened("openai:test@https://127.0.0.1:1/v1", {})
    assert "HTTPS_PROXY cannot be used" in str(caught.value)
    assert "pass-word-3" not in str(caught.value)
