"""Makes a kernel in Triton's interpreter compute what it computes when it is compiled."""
