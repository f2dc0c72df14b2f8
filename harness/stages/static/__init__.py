"""The static stage: what the text of a candidate shows before anything of it runs. No torch."""
