"""A candidate as a Python module: imported, its signature read, what it patches or leaves behind noticed."""
