"""The facts that lists show of a session: its summary, its cache of a long journal, and the lines that they need."""
