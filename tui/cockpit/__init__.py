"""The cockpit: the Textual app. Nothing of it is imported by the command line until a terminal is to be drawn on."""
