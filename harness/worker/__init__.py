"""The processes that import torch or triton. Nothing above this room imports it.

Trusted: `judge`, `clock`, `oracle`. With foreign code: `guest`, `timer`, `compiler`, `full_sizes`, `replay`.
"""
