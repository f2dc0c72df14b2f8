"""Where workers come from: the nursery, the fork servers, the warden of each worker, and the roles they take."""
