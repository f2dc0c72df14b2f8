"""From names of models to clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sessions.events import Role

from .access import access
from .client import Client, Limits
from .recorded import open_recorded
from .spec import ModelSpec, find_recording, parse_model, parse_models

ALL_ROLES = tuple(Role)


def check_models(
    text: str, *, environ: Mapping[str, str], home_recordings: Path, roles: Iterable[Role] = ALL_ROLES
) -> dict[Role, ModelSpec]:
    """The model of each role, once keys or recording are known to be there; loads no SDK and asks nobody."""
    models = parse_models(text, roles)
    for spec in dict.fromkeys(models.values()):
        if spec.provider == "recorded":
            find_recording(spec.name, home_recordings)
        else:
            access(spec, environ)
    return models


def open_clients(
    text: str,
    *,
    environ: Mapping[str, str],
    home_recordings: Path,
    limits: Limits,
    roles: Iterable[Role] = ALL_ROLES,
) -> dict[Role, Client]:
    """A client for each role, the same one where the model is the same; asks nobody yet. Errors as `open_client`."""
    opened: dict[ModelSpec, Client] = {}
    models = parse_models(text, roles)
    for spec in models.values():
        if spec not in opened:
            opened[spec] = open_client(
                str(spec), environ=environ, home_recordings=home_recordings, limits=limits
            )
    return {role: opened[spec] for role, spec in models.items()}


def open_client(
    text: str,
    *,
    environ: Mapping[str, str],
    home_recordings: Path,
    limits: Limits | None = None,
) -> Client:
    """A client for one model, as `spec` has its forms; asks nobody yet.

    The provider's SDK is imported here (a second or two). `UsageProblem` says what is wrong with the name, which
    variable misses a key or cannot be used, or which recordings there are.
    """
    spec = parse_model(text)
    limits = limits or Limits()
    if spec.provider == "recorded":
        return open_recorded(spec, home_recordings)
    reached = access(spec, environ)
    if spec.provider == "anthropic":
        from .anthropic_client import AnthropicClient

        return AnthropicClient(spec, reached, limits)
    if spec.provider == "openai" and spec.url is None:
        from .responses_client import ResponsesClient

        return ResponsesClient(spec, reached, limits)
    from .openai_client import OpenAIClient

    return OpenAIClient(spec, reached, limits)
