"""Language models: one seam, four kinds of client. Importing this loads no provider's SDK."""

from .absent import NoModel
from .asking import Retry, ask
from .client import CallKey, Client, Limits, Piece, Reply, Request
from .opening import open_client
from .recorded import RecordedClient, changed_templates
from .scripted import ScriptedClient, says
from .spec import ModelSpec, check_model, find_recording, parse_model

__all__ = [
    "CallKey",
    "Client",
    "Limits",
    "ModelSpec",
    "NoModel",
    "Piece",
    "RecordedClient",
    "Reply",
    "Request",
    "Retry",
    "ScriptedClient",
    "ask",
    "changed_templates",
    "check_model",
    "find_recording",
    "open_client",
    "parse_model",
    "says",
]
