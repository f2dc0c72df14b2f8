"""Opens clients for the models that a person named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sessions.events import Role

from .access import access
from .client import Client, Limits
from .clients.recorded import open_recorded
from .spec import ModelSpec, find_recording, parse_model, parse_models

ALL_ROLES = tuple(Role)


def check_models(
    text: str, *, environ: Mapping[str, str] | None, home_recordings: Path, roles: Iterable[Role] = ALL_ROLES
) -> dict[Role, ModelSpec]:
    """Returns the model of each role after checking its recording or, with `environ`, its key; loads no SDK, sends nothing."""
    models = parse_models(text, roles)
    for spec in dict.fromkeys(models.values()):
        if spec.provider == "recorded":
            find_recording(spec.name, home_recordings)
        elif environ is not None:
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
    """Returns a client for each role; roles with the same model share a client. Sends nothing.

    Raises errors as `open_client`.
    """
    models = parse_models(text, roles)
    opened = {
        spec: open_client(str(spec), environ=environ, home_recordings=home_recordings, limits=limits)
        for spec in dict.fromkeys(models.values())
    }
    return {role: opened[spec] for role, spec in models.items()}


def open_client(
    text: str, *, environ: Mapping[str, str], home_recordings: Path, limits: Limits | None = None
) -> Client:
    """Returns a client for one model (forms of the name: `spec`); sends nothing.

    Imports the provider's SDK, which takes a second or two. `UsageProblem` names the error: a wrong name, a missing
    or unusable key, or the recordings that exist.
    """
    spec = parse_model(text)
    limits = limits or Limits()
    if spec.provider == "recorded":
        return open_recorded(spec, home_recordings, limits)
    model_access = access(spec, environ)
    if spec.provider == "anthropic":
        from .clients.anthropic_client import AnthropicClient

        return AnthropicClient(spec, model_access, limits)
    if spec.provider == "openai" and spec.url is None:
        from .clients.responses_client import ResponsesClient

        return ResponsesClient(spec, model_access, limits)
    from .clients.openai_client import OpenAIClient

    return OpenAIClient(spec, model_access, limits)
