"""Base of the clients that use OpenAI's SDK: translates errors, and repeats requests without refused parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from engine.errors import ContextTooLong, ModelError
from engine.models.access import Access
from engine.models.client import Limits, Piece, Reply, Request
from engine.models.spec import ModelSpec

from .sdk import hidden_variables, http_client
from .streams import StreamItem, gather_reply

with hidden_variables():
    import httpx2
    import openai

from .faults import (
    TRANSPORT_ERRORS,
    WILD_ERRORS,
    from_status,
    from_transport,
    refused_parameter,
    require_stream,
)

SDK_ERRORS: tuple[type[Exception], ...] = (openai.OpenAIError, *TRANSPORT_ERRORS)
BROKEN = (*SDK_ERRORS, *WILD_ERRORS)
"""Exceptions of a stream, also of a stream that falls silent (`TimeoutError`)."""
REFUSALS = (openai.BadRequestError, openai.UnprocessableEntityError)


class OpenAIWire(ABC):
    """A client that uses OpenAI's SDK with any of its protocols.

    The stream's events are read as plain JSON: the SDK's types would change odd values before anyone can refuse them.
    """

    path: str
    """Path of the protocol below the server's address."""

    def __init__(
        self, spec: ModelSpec, access: Access, limits: Limits, *, output: str, optional: frozenset[str]
    ) -> None:
        """`output` is the parameter that limits the reply.

        `optional` are the other parameters that a model may refuse.
        """
        self.model = str(spec)
        self._name = spec.name
        self._secrets = access.secrets
        self._limits = limits
        self._output = output
        self._optional = optional | {output, "temperature"}
        self._refused: set[str] = set()
        with hidden_variables():
            self._sdk = open_sdk(spec, access, limits)

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. If the model refuses a parameter, the request is sent again without it."""
        while True:
            without = frozenset(self._refused)
            temperature = None if "temperature" in without else request.temperature
            try:
                return await gather_reply(
                    self._stream(request, without),
                    limits=self._limits,
                    on_piece=on_piece,
                    temperature=temperature,
                )
            except REFUSALS as error:
                if not self._adapt(error, without):
                    raise self._translated(error, began=False) from None

    async def close(self) -> None:
        """See `Client`."""
        await self._sdk.close()

    @abstractmethod
    def _parameters(self, request: Request) -> dict[str, Any]:
        """All parameters of a request."""

    @abstractmethod
    def _items(self, stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of the SDK's stream."""

    def _adapt(self, error: openai.APIStatusError, without: frozenset[str]) -> bool:
        """Adapt to a refusal; True if the next request will differ."""
        remaining = self._optional - without
        if isinstance(self._translated(error, began=False), ContextTooLong):
            # Servers with a small context add the requested output length to the prompt.
            refused = self._output if self._output in remaining else None
        else:
            refused = refused_parameter(error.message, error.param, remaining)
        if refused:
            self._refused.add(refused)
        return refused is not None

    async def _stream(self, request: Request, without: frozenset[str]) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of the stream.

        A refusal passes as the SDK's exception; any other error becomes a `ModelError`.
        """
        parameters = {name: value for name, value in self._parameters(request).items() if name not in without}
        began = False
        try:
            stream = await self._sdk.post(
                self.path,
                body=parameters | {"stream": True},
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with stream:
                began = True
                require_stream(stream.response)
                async with aclosing(self._items(stream)) as items:
                    async for item in items:
                        yield item
        except REFUSALS:
            raise
        except BROKEN as error:
            raise self._translated(error, began=began) from None

    def _translated(self, error: BaseException, *, began: bool) -> ModelError:
        return translate(error, began=began, secrets=self._secrets, connect_s=self._limits.connect_s)


def open_sdk(spec: ModelSpec, access: Access, limits: Limits) -> openai.AsyncOpenAI:
    """Returns the SDK's client for a model's address and key; without retries, because `asking` has them."""
    shared: dict[str, Any] = {
        "max_retries": 0,
        "timeout": httpx2.Timeout(None, connect=limits.connect_s),
        "default_headers": dict(access.headers),
        "http_client": http_client(openai.DefaultAsyncHttpxClient),
    }
    if spec.provider != "azure":
        return openai.AsyncOpenAI(api_key=access.key, base_url=access.url, **shared)
    return openai.AsyncAzureOpenAI(
        azure_endpoint=access.url,
        azure_deployment=spec.name,
        api_version=access.version,
        api_key=None if access.is_token else access.key,
        azure_ad_token=access.key if access.is_token else None,
        **shared,
    )


def translate(error: BaseException, *, began: bool, secrets: Sequence[str], connect_s: float) -> ModelError:
    """Returns the `ModelError` for an exception of the SDK.

    The original is not chained, because a traceback could print a key.
    """
    match error:
        case openai.APIStatusError():
            return from_status(
                error.status_code,
                kind=str(error.code or error.type or ""),
                message=server_message(error),
                headers=error.response.headers,
                secrets=secrets,
            )
        case openai.APIConnectionError():
            cause = error.__cause__ or httpx2.ConnectError(error.message)
        case openai.APIError():
            return in_stream(error.code, error.type, error.message, secrets)
        case openai.OpenAIError():
            cause = ValueError(str(error))
        case _:
            cause = error
    return from_transport(cause, began=began, secrets=secrets, connect_s=connect_s)


def in_stream(code: object, kind: object, message: object, secrets: Sequence[str]) -> ModelError:
    """Returns the error inside a stream with status 200; most are the server's own failures.

    Some servers send a number as the code.
    """
    word = str(code or kind or "server_error")
    status = int(word) if word.isdecimal() and 400 <= int(word) < 600 else 200
    words = str(message or "no reason given")
    return from_status(status, kind=word, message=words, headers={}, secrets=secrets)


def server_message(error: openai.APIStatusError) -> str:
    """Returns the server's own message, without the SDK's dump of the body."""
    if isinstance(error.body, dict) and isinstance(error.body.get("message"), str):
        return str(error.body["message"])
    return error.message
