"""Public benchmarks: each loader turns a person's clone into `PublicTask`s. Nothing here needs torch."""
