"""Reads the assembly that Triton writes: AMDGCN and PTX as text, torch-free. Below it is `wire` alone."""
