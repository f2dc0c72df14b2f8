"""Base of the two clients that use OpenAI's SDK."""

from __future__ import annotations

from typing import Any

from engine.errors import ContextTooLong
from engine.models.access import Access
from engine.models.client import Limits
from engine.models.spec import ModelSpec

from .sdk import hidden_variables, http_client
from .sdk_client import SdkClient

with hidden_variables():
    import httpx2
    import openai

from .faults import TRANSPORT_ERRORS, WILD_ERRORS, refused_parameter

BROKEN: tuple[type[Exception], ...] = (openai.OpenAIError, *TRANSPORT_ERRORS, *WILD_ERRORS)


class OpenAIWire(SdkClient):
    """A client that uses OpenAI's SDK with any of its protocols."""

    sdk = openai
    broken = BROKEN

    def __init__(
        self, spec: ModelSpec, access: Access, limits: Limits, *, output: str, optional: frozenset[str]
    ) -> None:
        """`output` is the parameter that limits the reply; `optional` are others that a model may refuse."""
        super().__init__(spec, access, limits, optional=optional | {output, "temperature"})
        self._output = output

    def _open_sdk(self, spec: ModelSpec, access: Access) -> openai.AsyncOpenAI:
        shared: dict[str, Any] = {
            "max_retries": 0,
            "timeout": httpx2.Timeout(None, connect=self._limits.connect_s),
            "default_headers": dict(access.headers),
            "http_client": http_client(openai.DefaultAsyncHttpxClient, reply_bytes=self._limits.reply_bytes),
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

    def _adapt(self, error: Any, parameters: dict[str, Any], remaining: frozenset[str]) -> bool:
        if isinstance(self._translated(error, began=False), ContextTooLong):
            # Servers with a small context add the requested output length to the prompt.
            refused = self._output if self._output in remaining else None
        else:
            refused = refused_parameter(error.message, error.param, remaining)
        if refused:
            self._refused.add(refused)
        return refused is not None
