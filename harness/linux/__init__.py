"""Linux below Python: calls that the standard library lacks, environments of processes, removal of folders. No torch."""
