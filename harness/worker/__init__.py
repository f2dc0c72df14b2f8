"""What runs in processes of its own, beside torch and triton; the engine imports only the torch-free ones."""
