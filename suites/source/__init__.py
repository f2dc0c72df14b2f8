"""Python that others wrote, as text: parsing, signatures of entry points, and the package around a file. None of it is run."""
