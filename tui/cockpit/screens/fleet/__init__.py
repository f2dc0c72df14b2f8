"""Fleet: what all instances do."""
