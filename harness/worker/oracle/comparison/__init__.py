"""Compares outputs with right ones, and says what is wrong with them."""
