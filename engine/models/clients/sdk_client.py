"""Base of the clients that use a provider's SDK: errors, refused parameters, and a free question about the model.

The two SDKs come from one generator: their exceptions have the same names, and their clients the same methods. The
events of a stream are read as plain JSON, because the SDK's types would change odd values before anyone can refuse
them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing
from types import ModuleType
from typing import Any
from urllib.parse import quote

from engine.errors import ModelError
from engine.models.access import Access
from engine.models.bookkeeping import field
from engine.models.client import Limits, Piece, Reply, Request
from engine.models.spec import ModelSpec
from sessions.events import Message

from .sdk import hidden_variables
from .streams import StreamItem, gather_reply

with hidden_variables():
    import httpx2

from .faults import from_status, from_transport, require_stream

CHECK_S = 5.0
"""Longest wait for the answer to a free question about the model."""
LONGEST_ANSWER = 4000
"""Characters of a server's message that are read."""
KEY_REFUSED = (401, 403)


class SdkClient(ABC):
    """One model of a provider, or of another server with the provider's protocol."""

    sdk: ModuleType
    broken: tuple[type[Exception], ...]
    """Exceptions of a stream, also of a stream that falls silent (`TimeoutError`)."""
    endpoint: str
    """The protocol, as `ServedModel` names it."""
    path: str
    """Path of the protocol below the server's address."""
    models_path: str = "/models"
    """Path of the models below the server's address."""

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits, *, optional: frozenset[str]) -> None:
        """`optional` are the parameters that a model may refuse; a refused one is left out of later requests."""
        self.model = str(spec)
        self._name = spec.name
        self._secrets = access.secrets
        self._limits = limits
        self._optional = optional
        self._refused: set[str] = set()
        with hidden_variables():
            self._client: Any = self._open_sdk(spec, access)

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. If the model refuses a parameter, the request is sent again without it."""
        while True:
            # Another request's refusal may arrive while this one is answered.
            without = frozenset(self._refused)
            parameters = {
                name: value
                for name, value in self._parameters(request, without).items()
                if name not in without
            }
            try:
                return await gather_reply(
                    self._stream(parameters),
                    limits=self._limits,
                    on_piece=on_piece,
                    endpoint=self.endpoint,
                    parameters=parameters,
                )
            except self._refusals as error:
                if not self._adapt(error, parameters, self._optional - without):
                    raise self._translated(error, began=False) from None

    async def check(self) -> None:
        """See `Checkable`. A server that does not answer the question, or does not know it, proves nothing."""
        try:
            async with asyncio.timeout(CHECK_S):
                await self._ask_about_the_model()
        except self.sdk.APIStatusError as error:
            message = server_message(error)
            # A server that does not know the path of models may repeat it, with the name in it.
            unknown = self._name in message and f"{self.models_path}/" not in message
            if error.status_code in KEY_REFUSED or (error.status_code == 404 and unknown):
                raise self._translated(error, began=False) from None
        except self.broken:
            return

    async def _ask_about_the_model(self) -> None:
        """Ask about the model, without tokens; raises the SDK's exceptions.

        Some keys may not read about models, and some gateways refuse each path that they do not know. So a refused key
        is tried again at the path of calls, with a request that has no message to answer.
        """
        try:
            await self._client.get(f"{self.models_path}/{quote(self._name)}", cast_to=httpx2.Response)
        except self.sdk.APIStatusError as error:
            if error.status_code not in KEY_REFUSED:
                raise
            await self._client.post(self.path, body={"model": self._name}, cast_to=httpx2.Response)

    async def close(self) -> None:
        """See `Client`."""
        await self._client.close()

    @abstractmethod
    def _open_sdk(self, spec: ModelSpec, access: Access) -> object:
        """Returns the SDK's client; without retries, because `retries.ask` has them."""

    @abstractmethod
    def _parameters(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        """Returns all parameters of a request; the caller leaves out those that the model refused."""

    @abstractmethod
    def _items(self, stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of the SDK's stream."""

    @abstractmethod
    def _adapt(self, error: Any, parameters: dict[str, Any], remaining: frozenset[str]) -> bool:
        """Adapt to a refusal of these parameters; True if the next request will differ."""

    @property
    def _refusals(self) -> tuple[type[Exception], ...]:
        return (self.sdk.BadRequestError, self.sdk.UnprocessableEntityError)

    async def _stream(self, parameters: dict[str, Any]) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of the stream.

        A refusal passes as the SDK's exception; any other error becomes a `ModelError`.
        """
        began = False
        try:
            stream = await self._client.post(
                self.path,
                body=parameters | {"stream": True},
                cast_to=object,
                stream=True,
                stream_cls=self.sdk.AsyncStream[object],
            )
            async with stream:
                began = True
                require_stream(stream.response)
                async with aclosing(self._items(stream)) as items:
                    async for item in items:
                        yield item
        except self._refusals:
            raise
        except self.broken as error:
            raise self._translated(error, began=began) from None

    def _translated(self, error: BaseException, *, began: bool) -> ModelError:
        return translate(
            error, self.sdk, began=began, secrets=self._secrets, connect_s=self._limits.connect_s
        )


def translate(
    error: BaseException, sdk: ModuleType, *, began: bool, secrets: Sequence[str], connect_s: float
) -> ModelError:
    """Returns the `ModelError` for an exception of the SDK.

    The original is not chained, because a traceback could print a key.
    """
    match error:
        case sdk.APIStatusError():
            return from_status(
                error.status_code,
                kind=str(getattr(error, "code", None) or error.type or ""),
                message=server_message(error),
                headers=error.response.headers,
                secrets=secrets,
            )
        case sdk.APIConnectionError():
            cause = error.__cause__ or httpx2.ConnectError(error.message)
        case sdk.APIError() if hasattr(error, "code"):
            return in_stream(error.code, error.type, error.message, secrets)
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


def server_message(error: Any) -> str:
    """Returns the server's own message, without the SDK's dump of the body."""
    message = field(error.body, "error", "message") or field(error.body, "message")
    return (message if isinstance(message, str) else str(error.message))[:LONGEST_ANSWER]


def split_system(messages: Sequence[Message]) -> tuple[str, list[dict[str, str]]]:
    """Returns the system text and the messages after it, as the protocols have them."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return system, [wire_message(message) for message in messages if message.role != "system"]


def wire_message(message: Message) -> dict[str, str]:
    """Returns a message as the protocols have it."""
    return {"role": message.role, "content": message.content}
