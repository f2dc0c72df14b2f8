"""Processes: the fork server, the warden of each worker, and what crosses between them."""
