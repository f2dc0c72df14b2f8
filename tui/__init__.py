"""The face: command line and cockpit. Knows nothing of GPUs, torch or Triton."""
