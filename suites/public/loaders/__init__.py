"""The loaders: each reads the clones of one public benchmark."""
