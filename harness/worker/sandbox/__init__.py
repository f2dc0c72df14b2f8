"""What keeps a guest from everything but its work, layer by layer."""
