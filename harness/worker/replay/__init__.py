"""Records, in the guest, what a call does to memory; replays the record with the candidate's kernels alone."""
