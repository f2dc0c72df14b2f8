"""Triton's interpreter as the judge needs it: every access watched, types rounded as on a device."""
