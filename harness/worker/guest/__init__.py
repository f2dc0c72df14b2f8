"""What runs a candidate and reports what it saw; believed in nothing but bytes."""
