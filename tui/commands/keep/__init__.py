"""Commands about what is kept: sessions, suites, recordings, this machine."""
