"""The commands, one module each. `tui.cli` imports a module when its command is called."""
