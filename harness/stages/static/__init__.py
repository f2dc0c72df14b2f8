"""The static stage: checks a candidate's text before any of it runs. No torch."""
