"""Commands about what is kept: sessions and kernels."""
