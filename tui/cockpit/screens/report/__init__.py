"""Report: what a session reached."""
