"""Words about one call of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sessions.state.state import CallState


def served_as(call: CallState) -> str:
    """Return `served as NAME` if the server names another model than the one that was asked for; else empty."""
    asked = call.model.partition(":")[2].partition("@")[0]
    served = call.served.model if call.served is not None else ""
    return f"served as {served}" if served not in ("", asked) else ""


def served_words(call: CallState) -> str:
    """Return `served as test-20261101, messages, max_tokens 32000, thinking.type adaptive`; empty if unknown."""
    if call.served is None:
        return ""
    return ", ".join(filter(None, (served_as(call), call.served.endpoint, *_values(call.served.parameters))))


def _values(parameters: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from _values(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name} {value:g}" if isinstance(value, float) else f"{prefix}{name} {value}"
