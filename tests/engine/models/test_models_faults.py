"""Every exception of an SDK or its HTTP library becomes a `ModelError` without a key in its text."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from email.utils import formatdate
from types import ModuleType
from typing import Any

import httpx2
import pytest

from engine.errors import ModelError, TryAgain
from engine.models.clients.faults import TRANSPORT_ERRORS, from_status, from_transport, one_line, retry_after

REQUEST = httpx2.Request("POST", "http://model.test/v1")
KEY = "sk-secret-0123456789"
CLIENTS = {"anthropic": "anthropic_client", "openai": "openai_client"}
"""Our module by SDK. SDKs are imported in the tests: every worker collects this file, but few of them run it."""


def loaded(sdk: str) -> tuple[Any, ModuleType]:
    """Return our module of an SDK, and the SDK."""
    return importlib.import_module(f"engine.models.clients.{CLIENTS[sdk]}"), importlib.import_module(sdk)


def exceptions_of(*modules: ModuleType) -> Iterator[type[Exception]]:
    # `inspect.getmembers` and `isinstance` would load all lazy parts of an SDK.
    values = [value for module in modules for value in vars(module).values()]
    for value in dict.fromkeys(value for value in values if issubclass(type(value), type)):
        if issubclass(value, Exception) and not issubclass(value, Warning):
            yield value


def build_exception(kind: type[Exception]) -> Exception:
    """Build an exception of this class without its constructor; its text contains the key."""
    error = kind.__new__(kind)
    error.args = (f"trouble with {KEY}",)
    response = httpx2.Response(500, request=REQUEST)
    for name, value in {
        "message": f"trouble with {KEY}",
        "api_message": None,
        "request": REQUEST,
        "response": response,
        "body": None,
        "request_id": None,
        "code": None,
        "param": None,
        "type": None,
        "status_code": getattr(kind, "status_code", 500),
    }.items():
        if not isinstance(getattr(kind, name, None), property):
            setattr(error, name, value)
    return error


@pytest.mark.parametrize("sdk", CLIENTS)
def test_every_sdk_exception_is_translated(sdk: str) -> None:
    client, module = loaded(sdk)
    translate = importlib.import_module("engine.models.clients.sdk_client").translate
    kinds = [kind for kind in exceptions_of(module, module._exceptions) if issubclass(kind, client.BROKEN)]
    assert len(kinds) > 10
    for kind in kinds:
        for began in (False, True):
            ours = translate(build_exception(kind), module, began=began, secrets=[KEY], connect_s=1.0)
            assert isinstance(ours, ModelError), kind
            assert ours.reason, kind
            assert KEY not in ours.message, kind
            assert "\n" not in ours.message, kind


@pytest.mark.parametrize("sdk", CLIENTS)
def test_request_exceptions_have_the_sdk_base_class(sdk: str) -> None:
    """Exceptions outside the SDK's base class belong to other features; a new such class fails this test."""
    client, module = loaded(sdk)
    outside = {kind.__name__ for kind in exceptions_of(module) if not issubclass(kind, client.BROKEN)}
    assert outside <= {"InvalidWebhookSignatureError"}


def test_every_transport_exception_is_caught_and_translated() -> None:
    for kind in exceptions_of(httpx2):
        elsewhere = kind.__module__.endswith(("_sse", "websockets._exceptions"))
        assert issubclass(kind, TRANSPORT_ERRORS) or elsewhere, kind
        for began in (False, True):
            ours = from_transport(build_exception(kind), began=began, secrets=[KEY], connect_s=1.0)
            assert isinstance(ours, ModelError), kind
            assert KEY not in ours.message, kind


def test_every_http_status_gives_a_model_error() -> None:
    retryable = set()
    for status in range(300, 600):
        ours = from_status(status, kind="", message=f"words {KEY}", headers={}, secrets=[KEY])
        assert KEY not in ours.message
        if isinstance(ours, TryAgain):
            retryable.add(status)
    assert retryable == {408, 409, 425, 429, 499, *range(500, 600)} - {501}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_is_read_as_a_date() -> None:
    wait = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert 55 < wait <= 60


def test_message_is_short_and_on_one_line() -> None:
    words = one_line(f"a\n  b {KEY} " + "x" * 5000, [KEY])
    assert words.startswith("a b [key] xxx")
    assert len(words) == 500
