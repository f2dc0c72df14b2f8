"""Translates provider errors: every exception of the SDKs and their HTTP library becomes a `ModelError`.

Loaded only with the SDK clients. Statuses and error types are from the providers' public error pages; 529 is
Anthropic's overload.
"""

from __future__ import annotations

import email.utils
import os
import re
import time
from collections.abc import Mapping, Sequence

import httpx2

from engine.errors import ContextTooLong, ModelError, TryAgain, UselessToRetry

AGAIN_BY_STATUS = {
    408: "server_error",
    409: "server_error",
    425: "server_error",
    429: "rate_limited",
    499: "connection",
    529: "overloaded",
}
USELESS_BY_STATUS = {
    400: "bad_request",
    401: "bad_key",
    402: "no_credit",
    403: "bad_key",
    404: "unknown_model",
    405: "bad_request",
    422: "bad_request",
    501: "bad_request",
}
BY_TYPE = {
    "overloaded_error": 529,
    "overloaded": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
    "authentication_error": 401,
    "permission_error": 403,
    "billing_error": 402,
    "insufficient_quota": 402,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "data_residency_mismatch": 400,
    "bio_policy": 400,
    "misalignment_policy_violation": 400,
}
"""Status for an error type: for errors inside a stream, and for types that say more than their status."""
TOO_LONG = re.compile(
    r"prompt is too long|context.{0,3}(length|window)|maximum (context|prompt|input)|"
    r"too many (input )?tokens|exceeds? the (available )?context|input is too long|reduce the length",
    re.IGNORECASE,
)
REMEDIES = {
    "bad_key": "check the key",
    "no_credit": "the account has no credit left",
    "unknown_model": "check the model's name and the server's address",
    "bad_request": "the server refuses the request as it is",
}
LONGEST_MESSAGE = 500
TRANSPORT_ERRORS: tuple[type[Exception], ...] = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    httpx2.CookieConflict,
    OSError,
)
"""All exceptions of the HTTP library; its streams raise them untranslated."""
WILD_ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)
"""Exceptions from reading a server's malformed answer: no JSON, or a field that is missing or has another type."""


def from_status(
    status: int, *, kind: str, message: str, headers: Mapping[str, str], secrets: Sequence[str]
) -> ModelError:
    """Returns the error of an HTTP status; `kind` is the provider's error type, empty if there is none."""
    if kind in BY_TYPE and (status < 400 or BY_TYPE[kind] == 402):
        status = BY_TYPE[kind]
    words = f"{status if status >= 400 else 'error in the stream'}: {one_line(message, secrets)}"
    if (
        status == 413
        or kind == "context_length_exceeded"
        or (status in (400, 422) and TOO_LONG.search(message))
    ):
        return ContextTooLong(words)
    if status in AGAIN_BY_STATUS:
        return TryAgain(AGAIN_BY_STATUS[status], words, retry_after_s=retry_after(headers))
    if status in USELESS_BY_STATUS:
        reason = USELESS_BY_STATUS[status]
        return UselessToRetry(reason, f"{words}; {REMEDIES[reason]}")
    if 300 <= status < 400:
        address = headers.get("location", "another address")
        return UselessToRetry(
            "bad_request", f"{status}: the server redirects to {address}: write that address after the @"
        )
    if 400 <= status < 500:
        return UselessToRetry("bad_request", f"{words}; {REMEDIES['bad_request']}")
    return TryAgain("server_error", words, retry_after_s=retry_after(headers))


def from_transport(
    error: BaseException, *, began: bool, secrets: Sequence[str], connect_s: float
) -> ModelError:
    """Returns the error of a failed connection or unreadable answer; `began` is True if the stream had started."""
    system = _system_error(error)
    parts = [type(error).__name__, str(error), "" if system in str(error) else system]
    words = one_line(": ".join(filter(None, parts)), secrets)
    match error:
        case httpx2.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in words:
            return UselessToRetry(
                "bad_certificate",
                f"the server's certificate is not trusted ({words}); set SSL_CERT_FILE to your authority's certificates in PEM",
            )
        case httpx2.ProxyError() if re.search(r"\b40[37]\b", words):
            return UselessToRetry(
                "proxy_refused", f"the proxy refuses ({words}); check HTTPS_PROXY and NO_PROXY"
            )
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | httpx2.LocalProtocolError():
            return UselessToRetry("bad_request", f"{words}; check the server's address and the key")
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return TryAgain("connection", f"no connection in {connect_s:g} s (limit connect_s)")
        case httpx2.TimeoutException():
            return TryAgain("silent", f"the server fell silent ({words})")
        case httpx2.DecodingError() | httpx2.TooManyRedirects():
            return TryAgain("garbage", f"the answer cannot be read ({words})")
        case httpx2.HTTPError() | httpx2.StreamError() | OSError():
            if began:
                return TryAgain("cut", f"the stream broke off ({words})")
            return TryAgain("connection", f"the connection failed ({words})")
        case _:
            return TryAgain("garbage", f"the answer cannot be read ({words})")


def _system_error(error: BaseException) -> str:
    """Returns the operating system's words behind an error (`Connection refused`); empty if there are none."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        cause = pending.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            return os.strerror(cause.errno) if cause.errno > 0 else cause.strerror
        pending += [cause.__context__, cause.__cause__]
        if isinstance(cause, BaseExceptionGroup):
            pending += cause.exceptions
    return ""


def require_stream(response: httpx2.Response) -> None:
    """Raise `TryAgain` if the response is a page instead of a stream (a captive portal, a proxy's notice)."""
    kind = response.headers.get("content-type", "")
    if "text/event-stream" not in kind:
        raise TryAgain("garbage", f"the server answered with {kind or 'no content type'} instead of a stream")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds that the server asks to wait; `None` if it names none.

    Reads `retry-after-ms`, and `retry-after` as seconds or as a date.
    """
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        value = headers["retry-after"]
        if value.replace(".", "", 1).isdecimal():
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def one_line(message: str, secrets: Sequence[str]) -> str:
    """Returns the message in one line, shortened, with every secret replaced. `secrets` are sorted longest first."""
    for secret in secrets:
        message = message.replace(secret, "[key]")
    # A lone surrogate is legal JSON, but a journal cannot store it.
    message = " ".join(message.encode("utf-8", "replace").decode().split())
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


def refused_parameter(message: str, parameter: str | None, optional: frozenset[str]) -> str | None:
    """Returns the optional parameter that a 400 refuses; `None` if it refuses a required one.

    The provider's own field is checked first (`reasoning.summary` means `reasoning`), then the names in the message.
    """
    named = (parameter or "").partition(".")[0]
    if named in optional:
        return named
    return next((name for name in sorted(optional) if re.search(rf"\b{name}\b", message)), None)
