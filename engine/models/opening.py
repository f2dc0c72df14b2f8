"""From a model's name to a client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .client import Client, Limits
from .recorded import open_recorded
from .spec import access, parse_model


def open_client(
    text: str,
    *,
    environ: Mapping[str, str],
    home_recordings: Path,
    limits: Limits | None = None,
) -> Client:
    """A client for `anthropic:NAME[@URL]`, `openai:NAME[@URL]` or `recorded:NAME`; asks nobody yet.

    The provider's SDK is imported here (a second or two). `UsageProblem` says what is wrong with the name, which
    variable misses a key, or which recordings there are.
    """
    spec = parse_model(text)
    limits = limits or Limits()
    if spec.provider == "recorded":
        return open_recorded(spec, home_recordings)
    reached = access(spec, environ)
    if spec.provider == "anthropic":
        from .anthropic_client import AnthropicClient

        return AnthropicClient(spec, reached, limits)
    from .openai_client import OpenAIClient

    return OpenAIClient(spec, reached, limits)
