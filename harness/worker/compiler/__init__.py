"""Launches captured, compiled for targets, and what their binaries need of a device."""
