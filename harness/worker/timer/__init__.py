"""Times one source in a sandboxed process, and plays launch tapes. What it reports is evidence."""
