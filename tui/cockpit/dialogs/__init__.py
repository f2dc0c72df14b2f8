"""Small windows over screens, and the line at the bottom."""
