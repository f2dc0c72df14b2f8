"""How the candidates of a pool share its GPUs: slots by capacity, leases, neighbours, and which GPUs are fit. No torch."""
