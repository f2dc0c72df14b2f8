"""How the candidates of a pool share its GPUs: slots by capacity, leases, and which GPUs are fit. No torch."""
