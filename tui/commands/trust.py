"""Asks whether an engine may go on with a session that another home made."""

from __future__ import annotations

import sys

import click

from sessions.catalog import require_trust, trust_session
from sessions.errors import ForeignSession
from sessions.home import Home
from tui.diagnostics import Complaint, say

trust_option = click.option(
    "--trust-session", "trusts", is_flag=True, help="Trust a session of another home."
)


def ask_for_trust(home: Home, session: str, *, trusts: bool) -> None:
    """Let an engine go on with a session, if a person agrees. Raises `ForeignSession` without a terminal, or `Complaint`."""
    try:
        require_trust(home, session)
    except ForeignSession as foreign:
        if not trusts:
            if sys.stdin is None or not sys.stdin.isatty():
                raise
            say(f"session {session} came from another home; going on would:")
            for act in foreign.acts:
                say(f"  {act}")
            if not click.confirm("Do you trust its sender?", default=False, err=True):
                raise Complaint("nothing was started") from foreign
        trust_session(home, session)
