"""The journal: events as lines of JSON in a file that is only appended to."""
