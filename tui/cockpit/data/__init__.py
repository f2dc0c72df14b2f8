"""Where the cockpit gets its state from: live sessions, replays, files."""
