"""The queue of attempts to decide: its order, gains, and words."""

from __future__ import annotations
