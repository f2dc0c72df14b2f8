"""The Latency screen's contents as plain data: times by case and GPU, captions, figures of a cell, plots."""
