"""Models behind gateways: headers, Azure, Gemini, private authorities and proxies, with the real SDKs on loopback."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from engine.errors import ModelError, TryAgain, UsageProblem, UselessToRetry
from engine.models import Client, ModelSpec, open_client
from engine.models.access import PROVIDERS, PROXIES, access, extra_headers
from engine.models.client import Reply
from tests.support.model_calls import BRISK, ignore, request
from tests.support.model_server import Answer, ModelServer, model_server, refuses, says
from tests.support.proxy import proxy

WIRES = ("anthropic", "openai")
HEADERS = "X-Team: kernels\nX-Gateway-Token: token-0123456789"
NOWHERE = Path("none")


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no certificates of the machine's own."""
    for name in (*PROXIES, "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def opened(model: str, environ: dict[str, str]) -> Client:
    return open_client(model, environ=environ, home_recordings=NOWHERE, limits=BRISK)


def at(wire: str, server: ModelServer) -> str:
    return f"{wire}:test@{server.anthropic_url if wire == 'anthropic' else server.openai_url}"


async def one(model: str, environ: dict[str, str]) -> Reply:
    """One reply, of a client made for it."""
    client = opened(model, environ)
    try:
        return await client.reply(request(), ignore)
    finally:
        await client.close()


async def fails(model: str, environ: dict[str, str]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await one(model, environ)
    return caught.value


@contextmanager
def private(*script: Answer) -> Iterator[tuple[ModelServer, trustme.CA]]:
    """A model server whose certificate a throwaway authority signed."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with model_server(*script, tls=tls) as server:
        yield server, authority


@pytest.mark.parametrize("wire", WIRES)
async def test_headers_of_a_gateway_travel_and_are_never_repeated(wire: str) -> None:
    echo = "who is token-0123456789?"
    with model_server(says("yes"), refuses(403, message=echo)) as server:
        environ = {"WAVEDECK_MODEL_HEADERS": HEADERS, "WAVEDECK_MODEL_KEY": "wd-key-123"}
        await one(at(wire, server), environ)
        refused = await fails(at(wire, server), environ)
    for seen in server.requests:
        assert (seen.headers["x-team"], seen.headers["x-gateway-token"]) == ("kernels", "token-0123456789")
    assert "token-0123456789" not in refused.message
    assert "who is [key]?" in refused.message


@pytest.mark.parametrize("model", ["anthropic:x", "openai:x", "gemini:x"])
def test_a_providers_own_address_is_sent_no_gateway_headers(model: str) -> None:
    provider, _, name = model.partition(":")
    environ = {PROVIDERS[provider].key_variable: "k", "WAVEDECK_MODEL_HEADERS": HEADERS}
    reached = access(ModelSpec(provider, name), environ)
    assert reached.headers == ()
    assert reached.url == PROVIDERS[provider].url


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("X-Team kernels-secret", "line 1 of WAVEDECK_MODEL_HEADERS is not a header"),
        ("\nX Team: secret", "line 2 of WAVEDECK_MODEL_HEADERS is not a header"),
        ("X-Team:", "the value of X-Team is empty"),
        ("X-Team: sécret", "contains a character that no header can carry"),
        ("X-Team: secret\nx-team: secret", "line 2 of WAVEDECK_MODEL_HEADERS: x-team appears twice"),
        ("Content-Length: 3", "Content-Length is set by the protocol"),
    ],
)
def test_a_wrong_header_is_told_without_its_value(text: str, told: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        extra_headers({"WAVEDECK_MODEL_HEADERS": text})
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "sécret" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "header", "value"),
    [
        ("AZURE_OPENAI_API_KEY", "api-key", "azure-key-1"),
        ("AZURE_OPENAI_AD_TOKEN", "authorization", "Bearer azure-key-1"),
    ],
)
async def test_a_deployment_on_azure(key: str, header: str, value: str) -> None:
    with model_server(says("from azure")) as server:
        environ = {
            "AZURE_OPENAI_ENDPOINT": server.anthropic_url,
            "OPENAI_API_VERSION": "2024-10-21",
            "WAVEDECK_MODEL_HEADERS": HEADERS,
            key: "azure-key-1",
        }
        reply = await one("azure:my-gpt", environ)
    [seen] = server.requests
    assert reply.text == "from azure"
    assert seen.route == "/openai/deployments/my-gpt/chat/completions"
    assert seen.query == "api-version=2024-10-21"
    assert seen.headers[header] == value
    assert seen.headers["x-team"] == "kernels"
    assert seen.body["max_completion_tokens"] == 32_000
    assert "max_tokens" not in seen.body


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("AZURE_OPENAI_ENDPOINT", "needs AZURE_OPENAI_ENDPOINT, as https://"),
        ("OPENAI_API_VERSION", "needs OPENAI_API_VERSION, as 2024"),
        ("AZURE_OPENAI_API_KEY", "set AZURE_OPENAI_API_KEY, or a token in AZURE_OPENAI_AD_TOKEN"),
    ],
)
def test_what_azure_needs_is_named(missing: str, told: str) -> None:
    whole = {
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
        "OPENAI_API_VERSION": "2024-10-21",
        "AZURE_OPENAI_API_KEY": "k",
    }
    assert access(ModelSpec("azure", "x"), whole).version == "2024-10-21"
    del whole[missing]
    with pytest.raises(UsageProblem) as caught:
        access(ModelSpec("azure", "x"), whole)
    assert told in str(caught.value)


async def test_gemini_is_asked_by_its_compatible_endpoint_and_its_thoughts_are_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert PROVIDERS["gemini"].url == "https://generativelanguage.googleapis.com/v1beta/openai/"
    with model_server(says("hi", input_tokens=100, output_tokens=10, thought_tokens=70)) as server:
        monkeypatch.setitem(PROVIDERS, "gemini", PROVIDERS["gemini"]._replace(url=server.openai_url))
        reply = await one("gemini:pro", {"GEMINI_API_KEY": "gem-key-1", "OPENAI_API_KEY": "sk-other"})
    [seen] = server.requests
    assert seen.headers["authorization"] == "Bearer gem-key-1"
    assert "sk-other" not in repr(seen.headers)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 80)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_private_authority_is_trusted_where_it_is_named(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private(says("over TLS")) as (server, authority):
        stranger = await fails(at(wire, server), {})
        assert (type(stranger), stranger.reason) == (UselessToRetry, "bad_certificate")
        assert "set SSL_CERT_FILE to your authority's certificates" in stranger.message
        assert server.requests == []
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert (await one(at(wire, server), {})).text == "over TLS"


@pytest.mark.parametrize("content", [None, "no certificate at all"])
def test_certificates_that_cannot_be_used_are_named(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "authority.pem"
    if content:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(UsageProblem, match="SSL_CERT_FILE cannot be used"):
        opened("openai:test@https://127.0.0.1:1/v1", {})


@pytest.mark.parametrize("wire", WIRES)
async def test_a_proxy_is_gone_through_unless_no_proxy_says_otherwise(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        private(says("tunnelled"), says("direct")) as (server, authority),
        proxy("me:pass-word-1") as between,
    ):
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        monkeypatch.setenv("HTTPS_PROXY", between.url("me:pass-word-1"))
        assert (await one(at(wire, server), {})).text == "tunnelled"
        assert between.asked == [f"127.0.0.1:{server.port}"]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert (await one(at(wire, server), {})).text == "direct"
        assert len(between.asked) == 1


async def test_a_proxy_that_refuses_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy("me:right") as between:
        monkeypatch.setenv("HTTPS_PROXY", between.url("me:pass-word-2"))
        environ = {"HTTPS_PROXY": between.url("me:pass-word-2")}
        refused = await fails("openai:test@https://127.0.0.1:1/v1", environ)
    assert (type(refused), refused.reason) == (UselessToRetry, "proxy_refused")
    assert "check HTTPS_PROXY and NO_PROXY" in refused.message
    assert "pass-word-2" not in refused.message


async def test_a_proxy_that_is_not_there_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy() as between:
        gone = between.url()
    monkeypatch.setenv("HTTPS_PROXY", gone)
    refused = await fails("openai:test@https://127.0.0.1:1/v1", {})
    assert (type(refused), refused.reason) == (TryAgain, "connection")


def test_a_proxy_that_cannot_be_one_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://me:pass-word-3@proxy")
    with pytest.raises(UsageProblem) as caught:
        opened("openai:test@https://127.0.0.1:1/v1", {})
    assert "HTTPS_PROXY cannot be used" in str(caught.value)
    assert "pass-word-3" not in str(caught.value)
