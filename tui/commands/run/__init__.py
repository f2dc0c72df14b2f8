"""Commands that run agents or judge kernels."""
