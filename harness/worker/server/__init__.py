"""Starts worker processes: nursery, fork servers, a warden for each worker, and the roles of workers."""
