"""Replies of models: their streamed pieces, and the module that they contain."""
