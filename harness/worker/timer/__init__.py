"""Times one source in a sandboxed process, and plays launch tapes. Its reports are evidence, not proof."""
