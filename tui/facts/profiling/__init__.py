"""What a profiler counted, as tables and sentences."""
