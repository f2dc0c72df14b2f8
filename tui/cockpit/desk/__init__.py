"""What screens ask the app for: messages, actions, files."""
