"""Runs three programs of each launch at `gpu` sizes and reports the accesses that miss, and bytes that no program touches."""
