"""Language models: one interface, several kinds of client. Importing this package loads no provider's SDK."""

from .client import LONGEST_REPLY, CallKey, Client, Limits, Piece, Reply, Request
from .clients.recorded import NoModel, RecordedClient, ScriptedClient, changed_templates, says
from .opening import check_models, open_client, open_clients
from .pacing import Gates, Pace
from .retries import Retry, ask
from .spec import ModelSpec, find_recording, parse_model, parse_models, recording_of

__all__ = [
    "LONGEST_REPLY",
    "CallKey",
    "Client",
    "Gates",
    "Limits",
    "ModelSpec",
    "NoModel",
    "Pace",
    "Piece",
    "RecordedClient",
    "Reply",
    "Request",
    "Retry",
    "ScriptedClient",
    "ask",
    "changed_templates",
    "check_models",
    "find_recording",
    "open_client",
    "open_clients",
    "parse_model",
    "parse_models",
    "recording_of",
    "says",
]
