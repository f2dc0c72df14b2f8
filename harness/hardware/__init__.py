"""Published facts about GPUs: products with their peaks and caches, partitions, and targets to compile for.

Enters: a device as the driver describes it. Leaves: its product and its target. Tables are TOML, each number with its source.
"""
