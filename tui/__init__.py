"""Command line and cockpit. Nothing here imports torch or Triton."""
