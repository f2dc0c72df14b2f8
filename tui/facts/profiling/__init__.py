"""Profiles as tables and sentences."""
