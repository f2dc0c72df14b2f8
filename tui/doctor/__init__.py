"""`wavedeck doctor`: what this machine has, and what follows from it."""
