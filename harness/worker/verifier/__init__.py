"""Records of calls run again, by a candidate's kernels alone."""
