"""A test and a benchmark of one kernel, for people without Wavedeck: files with plain torch and Triton."""
