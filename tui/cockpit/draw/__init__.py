"""From values to styled lines."""
