"""Results that are kept on disk: the evaluation, latencies and their ratios, counts, provenance, facts for serving. No torch."""
